package conformance

import (
	"context"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// define makes a custom resource `Ship` in a group of its own and waits until it is served.
func define(t *testing.T, group string) schema.GroupVersionResource {
	t.Helper()
	client, err := apiextensions.NewForConfig(connect(t))
	must(t, err)
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	number := apiextensionsv1.JSONSchemaProps{Type: "integer", Minimum: ptr.To(0.0)}
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "ships." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "ships", Kind: "Ship", ShortNames: []string{"sh"}},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec":   {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"port": text, "crew": number}},
						"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"at": text}},
					},
				}},
			}},
		},
	}
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	_, err = definitions.Create(t.Context(), definition, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { _ = definitions.Delete(context.Background(), definition.Name, metav1.DeleteOptions{}) })
	eventually(t, "the definition is established", func() bool {
		found, err := definitions.Get(t.Context(), definition.Name, metav1.GetOptions{})
		must(t, err)
		for _, condition := range found.Status.Conditions {
			if condition.Type == apiextensionsv1.Established {
				return condition.Status == apiextensionsv1.ConditionTrue
			}
		}
		return false
	})
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: "ships"}
}

func ship(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resource.GroupVersion().String(),
		"kind":       "Ship",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"port": "Oslo", "crew": int64(3)},
	}}
}

func TestTheDynamicClientWorksOnCustomResources(t *testing.T) {
	t.Parallel()
	_, namespace := typed(t)
	resource := define(t, "dynamic.example.com")
	client, err := dynamic.NewForConfig(connect(t))
	must(t, err)
	ships := client.Resource(resource).Namespace(namespace)

	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	informer := factory.ForResource(resource)
	_ = informer.Informer()
	factory.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.Informer().HasSynced) {
		t.Fatal("the cache never synced")
	}

	created, err := ships.Create(t.Context(), ship(resource, "fram"), metav1.CreateOptions{})
	must(t, err)
	wrong := ship(resource, "wrong")
	must(t, unstructured.SetNestedField(wrong.Object, int64(-1), "spec", "crew"))
	_, err = ships.Create(t.Context(), wrong, metav1.CreateOptions{})
	if !errors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.crew") {
		t.Fatalf("a negative crew gave %v", err)
	}
	must(t, unstructured.SetNestedField(created.Object, "Tromsø", "spec", "port"))
	_, err = ships.Update(t.Context(), created, metav1.UpdateOptions{})
	must(t, err)
	_, err = ships.Patch(t.Context(), "fram", types.MergePatchType, []byte(`{"spec":{"crew":13}}`), metav1.PatchOptions{})
	must(t, err)
	_, err = ships.Patch(t.Context(), "fram", types.StrategicMergePatchType, []byte(`{"spec":{"crew":1}}`), metav1.PatchOptions{})
	if !errors.IsUnsupportedMediaType(err) {
		t.Fatalf("a strategic patch of a custom resource gave %v", err)
	}

	// Status has its own endpoint, and apply its own ownership.
	applied := ship(resource, "fram")
	unstructured.RemoveNestedField(applied.Object, "spec")
	must(t, unstructured.SetNestedField(applied.Object, "sea", "status", "at"))
	_, err = ships.ApplyStatus(t.Context(), "fram", applied, metav1.ApplyOptions{FieldManager: "harbour"})
	must(t, err)
	found, err := ships.Get(t.Context(), "fram", metav1.GetOptions{})
	must(t, err)
	crew, _, _ := unstructured.NestedInt64(found.Object, "spec", "crew")
	at, _, _ := unstructured.NestedString(found.Object, "status", "at")
	if crew != 13 || at != "sea" || found.GetGeneration() != 3 {
		t.Fatalf("crew %d at %s in generation %d", crew, at, found.GetGeneration())
	}
	eventually(t, "the informer has the last state", func() bool {
		cached, err := informer.Lister().ByNamespace(namespace).Get("fram")
		return err == nil && cached.(*unstructured.Unstructured).GetResourceVersion() == found.GetResourceVersion()
	})
	must(t, ships.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	eventually(t, "the collection is empty", func() bool {
		list, err := ships.List(t.Context(), metav1.ListOptions{})
		must(t, err)
		return len(list.Items) == 0
	})
}

func TestTheMetadataClientSeesOnlyMetadata(t *testing.T) {
	t.Parallel()
	typed, namespace := typed(t)
	_, err := typed.CoreV1().ConfigMaps(namespace).Create(t.Context(), configMap("web"), metav1.CreateOptions{})
	must(t, err)
	config := connect(t)
	seen := record(config)
	client, err := metadata.NewForConfig(config)
	must(t, err)
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	maps := client.Resource(resource).Namespace(namespace)

	found, err := maps.Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)
	if found.Labels["app"] != "web" {
		t.Fatalf("got %+v", found)
	}
	list, err := maps.List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	must(t, err)
	if len(list.Items) != 1 || list.ResourceVersion == "" {
		t.Fatalf("the list holds %+v", list)
	}
	patched, err := maps.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"labels":{"tier":"front"}}}`), metav1.PatchOptions{})
	must(t, err)

	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, namespace, nil)
	informer := factory.ForResource(resource)
	_ = informer.Informer()
	factory.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.Informer().HasSynced) {
		t.Fatal("the cache never synced")
	}
	cached, err := informer.Lister().ByNamespace(namespace).Get("web")
	must(t, err)
	if cached.(*metav1.PartialObjectMetadata).Labels["tier"] != patched.Labels["tier"] {
		t.Fatalf("the informer has %+v", cached)
	}
	if streamed := seen.exchanges(func(one exchange) bool { return one.query.Get("sendInitialEvents") == "true" }); len(streamed) == 0 {
		t.Error("the metadata informer did not stream")
	}
	must(t, maps.Delete(t.Context(), "web", metav1.DeleteOptions{}))
	eventually(t, "the informer forgets it", func() bool {
		_, err := informer.Lister().ByNamespace(namespace).Get("web")
		return errors.IsNotFound(err)
	})
}

func TestDiscoveryAndTheMapperKnowEveryKind(t *testing.T) {
	t.Parallel()
	client, _ := typed(t)
	resource := define(t, "discovered.example.com")
	version, err := client.Discovery().ServerVersion()
	must(t, err)
	if version.Major != "1" || version.GitVersion == "" {
		t.Errorf("the version is %+v", version)
	}
	_, lists, err := client.Discovery().ServerGroupsAndResources()
	must(t, err)
	served := map[string]bool{}
	for _, list := range lists {
		for _, one := range list.APIResources {
			served[list.GroupVersion+"/"+one.Name] = true
		}
	}
	for _, wanted := range []string{
		"v1/pods", "v1/pods/eviction", "v1/pods/binding", "v1/services", "apps/v1/deployments", "apps/v1/deployments/scale",
		"batch/v1/jobs", "policy/v1/poddisruptionbudgets", "coordination.k8s.io/v1/leases", "discovered.example.com/v1/ships/status",
	} {
		if !served[wanted] {
			t.Errorf("%s is not served", wanted)
		}
	}

	discovery := memory.NewMemCacheClient(client.Discovery())
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(discovery), discovery, nil)
	for short, wanted := range map[string]string{"deploy": "Deployment", "po": "Pod", "sh": "Ship", "pdb": "PodDisruptionBudget"} {
		kind, err := mapper.KindFor(schema.GroupVersionResource{Resource: short})
		if err != nil || kind.Kind != wanted {
			t.Errorf("%s is %v, %v", short, kind, err)
		}
	}
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: resource.Group, Kind: "Ship"})
	must(t, err)
	if mapping.Resource != resource || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		t.Errorf("the mapping is %+v", mapping)
	}
	document, err := client.Discovery().OpenAPISchema()
	must(t, err)
	if document.GetDefinitions() == nil {
		t.Error("the OpenAPI document has no definitions")
	}
}
