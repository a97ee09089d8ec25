// Command kube-apiserver prints the flags, feature gates and admission plugins of that component.
package main

import (
	"garboard.invalid/schema/flags/report"

	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/pkg/kubeapiserver/options"
)

func main() {
	command := app.NewAPIServerCommand()
	command.InitDefaultHelpFlag()
	plugins := options.AllOrderedPlugins
	report.Print(command.Flags(), map[string][]string{
		"enable-admission-plugins":  plugins,
		"disable-admission-plugins": plugins,
	})
}
