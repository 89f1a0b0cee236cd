package conformance

import "testing"

func TestTheOpenAPIIndexFollowsCustomResources(t *testing.T) {
	t.Parallel()
	client, _ := typed(t)
	_ = define(t, "described.example.com")
	eventually(t, "the OpenAPI index has the custom resource", func() bool {
		paths, err := client.Discovery().OpenAPIV3().Paths()
		must(t, err)
		_, has := paths["apis/described.example.com/v1"]
		return has
	})
}
