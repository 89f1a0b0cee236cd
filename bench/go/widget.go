package main

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Widget is the custom resource that is reconciled, as an author declares it.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec"`
	Status WidgetStatus `json:"status,omitempty"`
}

// WidgetSpec is what the author of a Widget asks for.
type WidgetSpec struct {
	Size  int    `json:"size"`
	Note  string `json:"note"`
	Parts []Part `json:"parts"`
}

// Part is a part of a Widget.
type Part struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// WidgetStatus is what was observed.
type WidgetStatus struct {
	Written string `json:"written,omitempty"`
}

// WidgetList is a list of Widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}

// DeepCopyInto copies as the generated functions do.
func (in *Widget) DeepCopyInto(out *Widget) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Parts = slices.Clone(in.Spec.Parts)
}

// DeepCopyObject makes a Widget an object.
func (in *Widget) DeepCopyObject() runtime.Object {
	out := new(Widget)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyObject makes a list of Widgets an object.
func (in *WidgetList) DeepCopyObject() runtime.Object {
	out := &WidgetList{TypeMeta: in.TypeMeta}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Widget, len(in.Items))
	for index := range in.Items {
		in.Items[index].DeepCopyInto(&out.Items[index])
	}
	return out
}

// widgetScheme knows Widgets and nothing else.
func widgetScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Group: "bench.steersman.dev", Version: "v1"}
	scheme.AddKnownTypes(version, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, version)
	return scheme
}
