// Command kube-controller-manager prints the flags, feature gates and controllers of that component.
package main

import (
	"slices"

	"garboard.invalid/schema/flags/report"

	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	command := app.NewControllerManagerCommand()
	command.InitDefaultHelpFlag()
	controllers := app.KnownControllers()
	for alias := range app.ControllerAliases() {
		controllers = append(controllers, alias)
	}
	slices.Sort(controllers)
	report.Print(command.Flags(), map[string][]string{"controllers": controllers})
}
