// Command etcd prints the flags and feature gates of that program in the words of the report package.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"go.etcd.io/etcd/pkg/v3/featuregate"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	flags := map[string]string{"help": "bool", "h": "bool"} // the flag package answers these by itself
	etcdmain.FlagSet().VisitAll(func(each *flag.Flag) { flags[each.Name] = words(each) })
	gates := map[string]string{}
	for name, spec := range embed.NewConfig().ServerFeatureGate.(featuregate.MutableFeatureGate).GetAll() {
		gates[string(name)] = gate(spec)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	if err := out.Encode(map[string]any{"flags": flags, "feature_gates": gates, "choices": nil}); err != nil {
		panic(err)
	}
}

func words(each *flag.Flag) string {
	text := typeOf(each.Value)
	said := strings.Contains(strings.ToLower(each.Usage), "deprecated")
	if text == "ignored" || said || etcdmain.IsDeprecated(each.Name) {
		text += " deprecated"
	}
	return text
}

func typeOf(value flag.Value) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", value), "*")
	known := map[string]string{
		"flag.boolValue": "bool", "flag.durationValue": "duration", "flag.float64Value": "float64",
		"flag.intValue": "int", "flag.int64Value": "int64", "flag.stringValue": "string",
		"flag.uintValue": "uint", "flag.uint64Value": "uint64",
		"flags.IgnoredFlag": "ignored", "flags.SelectiveStringValue": "string", "flags.SelectiveStringsValue": "string",
		"flags.StringsValue": "stringSlice", "flags.UniqueStringsValue": "stringSlice", "flags.UniqueURLs": "stringSlice",
		"flags.URLsValue": "stringSlice", "flags.uint32Value": "uint32", "featuregate.featureGate": "mapStringBool",
	}
	if text, ok := known[name]; ok {
		return text
	}
	fmt.Fprintf(os.Stderr, "flag values of type %s are not known here\n", name)
	os.Exit(1)
	return ""
}

func gate(spec featuregate.FeatureSpec) string {
	stages := map[string]string{"": "ga", "ALPHA": "alpha", "BETA": "beta", "DEPRECATED": "deprecated"}
	words := stages[string(spec.PreRelease)] + map[bool]string{true: " on", false: " off"}[spec.Default]
	if spec.LockToDefault {
		words += " locked"
	}
	return words
}
