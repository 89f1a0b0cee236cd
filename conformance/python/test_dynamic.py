"""The dynamic client: discovery, custom resources, and objects from manifests."""

import yaml
from cluster import ClusterTest, eventually
from kubernetes import client, dynamic, utils
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError, ResourceNotFoundError

GROUP = "python.example.com"
SHIPS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"ships.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "ships", "singular": "ship", "kind": "Ship", "listKind": "ShipList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["port"],
                                "properties": {
                                    "port": {"type": "string"},
                                    "crew": {"type": "integer", "minimum": 0, "default": 1},
                                },
                            },
                            "status": {"type": "object", "properties": {"at": {"type": "string"}}},
                        },
                    }
                },
            }
        ],
    },
}


class Dynamic(ClusterTest):
    def setUp(self):
        super().setUp()
        self.dynamic = dynamic.DynamicClient(self.api)

    def define(self):
        """Makes the custom resource and gives the client for it."""
        definitions = self.dynamic.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
        definitions.create(body=SHIPS)
        self.addCleanup(definitions.delete, name=SHIPS["metadata"]["name"])

        def established():
            found = definitions.get(name=SHIPS["metadata"]["name"])
            conditions = found.to_dict().get("status", {}).get("conditions", [])
            return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

        eventually("the definition is established", established)
        return self.dynamic.resources.get(api_version=f"{GROUP}/v1", kind="Ship")

    def ship(self, name, **spec):
        return {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Ship",
            "metadata": {"name": name},
            "spec": {"port": "Oslo", **spec},
        }

    def test_custom_resources_are_found_by_discovery_and_used(self):
        ships = self.define()
        created = ships.create(body=self.ship("fram"), namespace=self.namespace)
        self.assertEqual(1, created.spec.crew)
        ships.patch(
            name="fram", namespace=self.namespace, body={"spec": {"crew": 13}},
            content_type="application/merge-patch+json",
        )
        ships.server_side_apply(
            name="fram", namespace=self.namespace, body=self.ship("fram", crew=14),
            field_manager="harbour", force_conflicts=True,
        )
        with self.assertRaises(ConflictError):
            ships.server_side_apply(
                name="fram", namespace=self.namespace, body=self.ship("fram", crew=15), field_manager="other"
            )
        ships.status.patch(
            name="fram", namespace=self.namespace, body={"status": {"at": "sea"}},
            content_type="application/merge-patch+json",
        )
        found = ships.get(name="fram", namespace=self.namespace)
        self.assertEqual((14, "sea"), (found.spec.crew, found.status.at))
        found.spec.port = "Bergen"
        ships.replace(body=found, namespace=self.namespace)
        self.assertEqual(["fram"], [one.metadata.name for one in ships.get(namespace=self.namespace).items])
        ships.delete(name="fram", namespace=self.namespace)
        with self.assertRaises(NotFoundError):
            ships.get(name="fram", namespace=self.namespace)

        objects = client.CustomObjectsApi(self.api)
        objects.create_namespaced_custom_object(GROUP, "v1", self.namespace, "ships", self.ship("gjoa"))
        error = self.refused(
            422, objects.create_namespaced_custom_object, GROUP, "v1", self.namespace, "ships", self.ship("bad", crew=-1)
        )
        self.assertIn("spec.crew", error.body)
        names = [one["metadata"]["name"] for one in objects.list_namespaced_custom_object(GROUP, "v1", self.namespace, "ships")["items"]]
        self.assertEqual(["gjoa"], names)

    def test_an_informer_follows_from_the_list_it_made(self):
        maps = self.dynamic.resources.get(api_version="v1", kind="ConfigMap")
        body = self.config_map("web").to_dict()
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": body["data"]}
        listed = maps.get(namespace=self.namespace)
        store = {item.metadata.name: item for item in listed.items}
        maps.create(body=body, namespace=self.namespace)
        maps.patch(name="web", namespace=self.namespace, body={"data": {"colour": "red"}}, content_type="application/merge-patch+json")
        maps.create(body={**body, "metadata": {"name": "last"}}, namespace=self.namespace)
        watcher = maps.watch(namespace=self.namespace, resource_version=listed.metadata.resourceVersion, timeout=60)
        for event in watcher:
            store[event["object"].metadata.name] = event["object"]
            if event["object"].metadata.name == "last":
                break
        self.assertEqual("red", store["web"].data.colour)

    def test_discovery_finds_kinds_and_refuses_others(self):
        search = self.dynamic.resources.search(kind="Deployment")
        self.assertIn("apps/v1", [found.group_version for found in search])
        pods = self.dynamic.resources.get(api_version="v1", kind="Pod")
        self.assertIn("po", pods.short_names)
        with self.assertRaises(ResourceNotFoundError):
            self.dynamic.resources.get(api_version="v1", kind="Unicorn")

    def test_manifests_are_created_and_applied(self):
        manifest = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}], selector: {app: web}}
---
apiVersion: v1
kind: Secret
metadata: {name: web}
stringData: {password: secret}
"""
        documents = list(yaml.safe_load_all(manifest))
        utils.create_from_yaml(self.api, yaml_objects=documents, namespace=self.namespace)
        secret = self.core.read_namespaced_secret("web", self.namespace)
        self.assertEqual({"password": "c2VjcmV0"}, secret.data)
        service = self.core.read_namespaced_service("web", self.namespace)
        self.assertEqual((80, "TCP"), (service.spec.ports[0].target_port, service.spec.ports[0].protocol))
