// Answers, one JSON line for each, what the Go libraries behind kubectl and kubeadm make of a patch.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	proxyconfig "k8s.io/kube-proxy/config/v1alpha1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

type question struct {
	Op            string
	Kind          string // "apps/v1 Deployment"
	Original      json.RawMessage
	Modified      json.RawMessage
	Current       json.RawMessage
	Patch         json.RawMessage
	Overwrite     bool
	Preconditions []string
	Times         int // ask that often: Go's maps have no fixed order, and some outcomes depend on it
}

type answer struct {
	Outcome json.RawMessage `json:"outcome,omitempty"`
	Error   string          `json:"error,omitempty"`
}

func typeOf(kind string) (runtime.Object, error) {
	apiVersion, name, _ := strings.Cut(kind, " ")
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	return scheme.Scheme.New(gv.WithKind(name))
}

func preconditions(names []string) (checks []mergepatch.PreconditionFunc) {
	for _, name := range names {
		if key, found := strings.CutPrefix(name, "metadata."); found {
			checks = append(checks, mergepatch.RequireMetadataKeyUnchanged(key))
		} else {
			checks = append(checks, mergepatch.RequireKeyUnchanged(name))
		}
	}
	return checks
}

func outcome(q question) ([]byte, error) {
	switch q.Op {
	case "json":
		patch, err := jsonpatch.DecodePatch(q.Patch)
		if err != nil {
			return nil, err
		}
		return patch.Apply(q.Original)
	case "merge":
		return jsonpatch.MergePatch(q.Original, q.Patch)
	}
	object, err := typeOf(q.Kind)
	if err != nil {
		return nil, err
	}
	switch q.Op {
	case "strategic":
		return strategicpatch.StrategicMergePatch(q.Original, q.Patch, object)
	case "two-way":
		return strategicpatch.CreateTwoWayMergePatch(q.Original, q.Modified, object, preconditions(q.Preconditions)...)
	case "three-way":
		meta, err := strategicpatch.NewPatchMetaFromStruct(object)
		if err != nil {
			return nil, err
		}
		return strategicpatch.CreateThreeWayMergePatch(
			q.Original, q.Modified, q.Current, meta, q.Overwrite, preconditions(q.Preconditions)...)
	}
	return nil, fmt.Errorf("no such operation: %s", q.Op)
}

func reply(q question) (result answer) {
	defer func() {
		if fault := recover(); fault != nil {
			result = answer{Error: fmt.Sprintf("crash: %v", fault)}
		}
	}()
	text, err := outcome(q)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Outcome: text}
}

func main() {
	kubeletconfig.AddToScheme(scheme.Scheme)
	proxyconfig.AddToScheme(scheme.Scheme)
	questions := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer out.Flush()
	answers := json.NewEncoder(out)
	for {
		var q question
		if err := questions.Decode(&q); err != nil {
			return
		}
		var replies []answer
		for range max(q.Times, 1) {
			replies = append(replies, reply(q))
		}
		if err := answers.Encode(replies); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
