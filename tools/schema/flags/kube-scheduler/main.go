// Command kube-scheduler prints the flags and feature gates of that component.
package main

import (
	"garboard.invalid/schema/flags/report"

	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	command := app.NewSchedulerCommand()
	command.InitDefaultHelpFlag()
	report.Print(command.Flags(), nil)
}
