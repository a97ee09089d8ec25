// Command types prints what Go knows about the API types of one Kubernetes release, as JSON on standard output.
//
// Every field is one line of text in the notation of docs/decisions/type-data.md:
//
//	[]core/v1.Container merge=name        a list merged by name
//	*int32 omitempty                      a pointer, left out when nil
//	{}quantity omitempty                  a map from strings to quantities
package main

import (
	"encoding"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"reflect"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiserver "k8s.io/apiserver/pkg/apis/apiserver/v1"
	audit "k8s.io/apiserver/pkg/apis/audit/v1"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	logs "k8s.io/component-base/logs/api/v1"
	kubeproxy "k8s.io/kube-proxy/config/v1alpha1"
	kubescheduler "k8s.io/kube-scheduler/config/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	bootstraptoken "k8s.io/kubernetes/cmd/kubeadm/app/apis/bootstraptoken/v1"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/scheme"
)

// Types that write themselves: in a document they are not the struct that Go holds.
var selfWritten = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():                          "quantity",
	reflect.TypeFor[resource.QuantityValue]():                     "quantity",
	reflect.TypeFor[metav1.Time]():                                "time",
	reflect.TypeFor[metav1.MicroTime]():                           "microTime",
	reflect.TypeFor[metav1.Duration]():                            "duration",
	reflect.TypeFor[logs.TimeOrMetaDuration]():                    "durationOrNanoseconds",
	reflect.TypeFor[intstr.IntOrString]():                         "intOrString",
	reflect.TypeFor[bootstraptoken.BootstrapTokenString]():        "bootstrapToken",
	reflect.TypeFor[runtime.Unknown]():                            "raw",
	reflect.TypeFor[runtime.RawExtension]():                       "raw",
	reflect.TypeFor[metav1.FieldsV1]():                            "raw",
	reflect.TypeFor[apiextensions.JSON]():                         "raw",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       "raw",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        "raw",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): "raw",
}

func writesItself(goType reflect.Type) bool {
	pointer := reflect.PointerTo(goType)
	for _, way := range []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	} {
		if pointer.Implements(way) {
			return true
		}
	}
	return false
}

type table struct {
	Roots  map[string]string            `json:"roots"` // "apps/v1 Deployment" -> "apps/v1.Deployment"
	Types  map[string]map[string]string `json:"types"` // type -> json name -> field
	Self   map[string]string            `json:"self"`  // self-written type -> how
	origin map[string]reflect.Type
}

func main() {
	seen := table{map[string]string{}, map[string]map[string]string{}, map[string]string{}, map[string]reflect.Type{}}
	components := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apiextensions.AddToScheme, apiserver.AddToScheme, audit.AddToScheme,
		kubelet.AddToScheme, kubeproxy.AddToScheme, kubescheduler.AddToScheme,
	} {
		if err := add(components); err != nil {
			fail("%v", err)
		}
	}
	for _, scheme := range []*runtime.Scheme{clientgo.Scheme, components, kubeadm.Scheme} {
		for kind, goType := range scheme.AllKnownTypes() {
			seen.addRoot(kind, goType)
		}
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", " ")
	if err := out.Encode(seen); err != nil {
		fail("%v", err)
	}
}

func (t *table) addRoot(kind schema.GroupVersionKind, goType reflect.Type) {
	if kind.Version == runtime.APIVersionInternal || goType == reflect.TypeFor[runtime.Unknown]() {
		return
	}
	// ListOptions, WatchEvent and their like are registered in every group; once is enough.
	fromMeta := strings.HasSuffix(goType.PkgPath(), "/meta/v1")
	if fromMeta && kind.GroupVersion() != (schema.GroupVersion{Version: "v1"}) {
		return
	}
	t.Roots[kind.GroupVersion().String()+" "+kind.Kind] = t.reference(goType)
}

// reference names a struct type and makes sure that it is in the table.
func (t *table) reference(goType reflect.Type) string {
	name := path.Base(path.Dir(goType.PkgPath())) + "/" + path.Base(goType.PkgPath()) + "." + goType.Name()
	if known, ok := t.origin[name]; ok {
		if known != goType {
			fail("%s stands for both %v and %v", name, known.PkgPath(), goType.PkgPath())
		}
		return name
	}
	t.origin[name] = goType
	how, special := selfWritten[goType]
	if special {
		t.Self[name] = how
	} else if writesItself(goType) {
		fail("%v reads or writes itself: teach this program how", goType)
	}
	fields := map[string]string{}
	t.Types[name] = fields
	t.addFields(goType, fields)
	return name
}

func (t *table) addFields(goType reflect.Type, fields map[string]string) {
	for i := range goType.NumField() {
		field := goType.Field(i)
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if name == "-" || (!field.IsExported() && !field.Anonymous) {
			continue
		}
		if field.Anonymous && name == "" {
			inner := field.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				t.addFields(inner, fields)
				continue
			}
		}
		if name == "" {
			name = field.Name
		}
		fields[name] = t.describe(field.Type) + words(options) + patchWords(field.Tag)
	}
}

func words(options string) string {
	out := ""
	for _, option := range strings.Split(options, ",") {
		switch option {
		case "omitempty", "omitzero":
			out += " " + option
		case "", "inline":
		default:
			fail("json option %q is not known here", option)
		}
	}
	return out
}

func patchWords(tag reflect.StructTag) string {
	out := ""
	for _, word := range strings.Split(tag.Get("patchStrategy"), ",") {
		switch word {
		case "":
		case "merge", "replace", "retainKeys":
			out += " " + word
		default:
			fail("patch strategy %q is not known here", word)
		}
	}
	if key := tag.Get("patchMergeKey"); key != "" {
		out += " key=" + key
	}
	return out
}

func (t *table) describe(goType reflect.Type) string {
	if goType.Kind() != reflect.Struct && goType.Kind() != reflect.Pointer && writesItself(goType) {
		fail("%v reads or writes itself: teach this program how", goType)
	}
	switch goType.Kind() {
	case reflect.Pointer:
		return "*" + t.describe(goType.Elem())
	case reflect.Slice:
		if goType.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + t.describe(goType.Elem())
	case reflect.Map:
		if goType.Key().Kind() != reflect.String {
			fail("%v has keys that are no strings", goType)
		}
		return "{}" + t.describe(goType.Elem())
	case reflect.Struct:
		return t.reference(goType)
	case reflect.Interface:
		return "any"
	case reflect.Int:
		return "int64"
	case reflect.Uint:
		return "uint64"
	case reflect.String, reflect.Bool, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return goType.Kind().String()
	}
	fail("%v cannot stand in a document", goType)
	return ""
}

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", values...)
	os.Exit(1)
}
