// Command kubelet prints the flags and feature gates of that component.
package main

import (
	"garboard.invalid/schema/flags/report"
	"github.com/spf13/pflag"

	_ "k8s.io/kubernetes/cmd/kubelet/app" // its feature gates
	"k8s.io/kubernetes/cmd/kubelet/app/options"
)

// The kubelet parses its flags itself and shows cobra none of them, so the set is put together as its command does.
func main() {
	config, err := options.NewKubeletConfiguration()
	if err != nil {
		panic(err)
	}
	flags := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	options.NewKubeletFlags().AddFlags(flags)
	options.AddKubeletConfigFlags(flags, config)
	options.AddGlobalFlags(flags)
	flags.BoolP("help", "h", false, "")
	report.Print(flags, nil)
}
