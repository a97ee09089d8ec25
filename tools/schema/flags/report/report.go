// Package report prints the flags and feature gates of one component as JSON: each a line of words.
package report

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	_ "k8s.io/component-base/logs/json/register" // as every main package does: it adds flags
)

// Component is everything that is said of one program.
type Component struct {
	Flags        map[string]string `json:"flags"`         // "stringSlice", "bool deprecated hidden"
	FeatureGates map[string]string `json:"feature_gates"` // "beta on", "ga on locked"
	// Words that a flag takes and that come and go with releases: --controllers, --enable-admission-plugins.
	Choices map[string][]string `json:"choices"`
}

// Print writes the component to standard output.
func Print(flags *pflag.FlagSet, choices map[string][]string) {
	component := Component{map[string]string{}, map[string]string{}, choices}
	flags.VisitAll(func(flag *pflag.Flag) {
		words := flag.Value.Type()
		if flag.Deprecated != "" {
			words += " deprecated"
		}
		if flag.Hidden {
			words += " hidden"
		}
		component.Flags[strings.ReplaceAll(flag.Name, "_", "-")] = words // the programs normalise when they start
	})
	if flags.Lookup("feature-gates") != nil {
		for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
			component.FeatureGates[string(name)] = gate(spec)
		}
	}
	Write(component)
}

func gate(spec featuregate.FeatureSpec) string {
	stages := map[string]string{"": "ga", "ALPHA": "alpha", "BETA": "beta", "DEPRECATED": "deprecated"}
	words := stages[string(spec.PreRelease)] + map[bool]string{true: " on", false: " off"}[spec.Default]
	if spec.LockToDefault {
		words += " locked"
	}
	return words
}

// Write prints any component, also one that has no Kubernetes flag set.
func Write(component any) {
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	if err := out.Encode(component); err != nil {
		panic(err)
	}
}
