// Command kube-proxy prints the flags and feature gates of that component.
package main

import (
	"garboard.invalid/schema/flags/report"

	"k8s.io/kubernetes/cmd/kube-proxy/app"
)

func main() {
	command := app.NewProxyCommand()
	command.InitDefaultHelpFlag()
	report.Print(command.Flags(), nil)
}
