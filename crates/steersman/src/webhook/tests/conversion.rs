//! Conversion between versions.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Shop, ShopSpec, ask, post, read};
use crate::error::{Error, Result};
use crate::serve;
use crate::webhook::{Conversion, Spoke, WebhookServer};

/// Shops once had a size in words, and before that, none.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "demo.steersman.dev", version = "v1beta1", kind = "Shop", namespaced)]
#[kube(root = "BetaShop")]
struct BetaShopSpec {
    size: String,
}

impl Spoke for BetaShop {
    type Hub = Shop;

    fn to_hub(&self) -> Result<Shop> {
        let replicas = match self.spec.size.as_str() {
            "small" => Some(1),
            "large" => Some(5),
            "panic" => panic!("as it was told"),
            other => return Err(Error::message(format!("no size: {other}"))),
        };
        let spec = ShopSpec { replicas, owner: String::new(), shelves: Vec::new() };
        // Metadata are forgotten here, which must do no harm.
        let mut shop = Shop::new("", spec);
        shop.metadata.annotations = Some([("was".into(), self.spec.size.clone())].into());
        Ok(shop)
    }

    fn from_hub(hub: &Shop) -> Result<Self> {
        let size = if hub.spec.replicas > Some(1) { "large" } else { "small" };
        let mut shop = BetaShop::new("", BetaShopSpec { size: size.to_owned() });
        shop.metadata = hub.metadata.clone();
        shop.metadata.labels = None; // this one copied them and means what it does
        Ok(shop)
    }
}

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "demo.steersman.dev", version = "v1alpha1", kind = "Shop", namespaced)]
#[kube(root = "AlphaShop")]
struct AlphaShopSpec {}

impl Spoke for AlphaShop {
    type Hub = Shop;

    fn to_hub(&self) -> Result<Shop> {
        let spec = ShopSpec { replicas: Some(2), owner: String::new(), shelves: Vec::new() };
        Ok(Shop::new(self.metadata.name.as_deref().unwrap_or_default(), spec))
    }

    fn from_hub(_: &Shop) -> Result<Self> {
        Ok(AlphaShop::new("", AlphaShopSpec {}))
    }
}

fn server() -> WebhookServer {
    let conversion = Conversion::hub::<Shop>().spoke::<BetaShop>().spoke::<AlphaShop>();
    WebhookServer::builder("shop").in_process().converts(conversion).build().unwrap()
}

fn object(version: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": format!("demo.steersman.dev/{version}"), "kind": "Shop",
        "metadata": {
            "name": "corner", "namespace": "default", "uid": "u",
            "labels": {"a": "b"}, "annotations": {"c": "d"},
            "creationTimestamp": "2030-01-01T00:00:00Z", "fromTheFuture": [1],
            "managedFields": [{"manager": "kubectl", "operation": "Apply", "apiVersion": "v1",
                               "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}],
        },
    });
    object["spec"] = spec;
    object
}

fn review(desired: &str, objects: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "4711", "desiredAPIVersion": format!("demo.steersman.dev/{desired}"),
                    "objects": objects},
    })
}

#[tokio::test]
async fn objects_are_converted_in_order_and_keep_their_metadata() {
    let objects = [
        object("v1beta1", json!({"size": "large"})),
        object("v1", json!({"replicas": 7, "owner": "ann", "shelves": []})),
        object("v1alpha1", json!({})),
    ];
    let answer = ask(&server(), "/convert", &review("v1", &objects)).await;
    assert_eq!((&answer["uid"], &answer["result"]["status"]), (&json!("4711"), &json!("Success")));
    let converted = answer["convertedObjects"].as_array().unwrap();
    let replicas: Vec<&Value> = converted.iter().map(|o| &o["spec"]["replicas"]).collect();
    assert_eq!(replicas, [&json!(5), &json!(7), &json!(2)]);
    assert_eq!(converted[1], objects[1], "the right version already");
    assert_eq!(converted[2]["metadata"], objects[2]["metadata"]);
    assert_eq!(converted[2]["apiVersion"], "demo.steersman.dev/v1");
    let mut metadata = objects[0]["metadata"].clone();
    metadata["annotations"]["was"] = json!("large");
    assert_eq!(converted[0]["metadata"], metadata);
}

#[tokio::test]
async fn from_spoke_to_spoke_the_way_goes_through_the_hub() {
    let alpha = object("v1alpha1", json!({}));
    let answer = ask(&server(), "/convert", &review("v1beta1", std::slice::from_ref(&alpha))).await;
    let beta = &answer["convertedObjects"][0];
    assert_eq!((&beta["kind"], &beta["spec"]), (&json!("Shop"), &json!({"size": "large"})));
    let mut metadata = alpha["metadata"].clone();
    metadata.as_object_mut().unwrap().remove("labels");
    assert_eq!(beta["metadata"], metadata);
}

#[tokio::test]
async fn one_object_that_cannot_be_converted_fails_the_review_and_is_named() {
    let good = object("v1beta1", json!({"size": "large"}));
    let with = |spec: Value| object("v1beta1", spec);
    let mut other = good.clone();
    other["kind"] = json!("Market");
    let named = "cannot convert Shop default/corner from demo.steersman.dev/v1beta1 to \
                 demo.steersman.dev/v1: ";
    let cases = [
        (with(json!({"size": "huge"})), 422, format!("{named}no size: huge")),
        (with(json!({"size": 5})), 422, format!("{named}invalid type")),
        (with(json!({"size": "panic"})), 500, format!("{named}panic: as it was told")),
        (object("v0", json!({})), 400, "version \"demo.steersman.dev/v0\" is not known".into()),
        (other, 400, "nobody converts the kind \"Market\"".into()),
    ];
    for (bad, code, message) in cases {
        let answer = ask(&server(), "/convert", &review("v1", &[good.clone(), bad])).await;
        assert_eq!(answer["result"]["status"], "Failure");
        assert_eq!(answer["uid"], "4711");
        let text = answer["result"]["message"].as_str().unwrap();
        assert!(text.contains(&message), "{text:?} should contain {message:?}");
        assert_eq!(answer["result"]["code"], code, "{text}");
        assert_eq!(answer["convertedObjects"], json!([]));
    }
    let answer = ask(&server(), "/convert", &review("v9", &[good])).await;
    assert!(answer["result"]["message"].as_str().unwrap().contains("v9\" is not known, only"));
}

#[tokio::test]
async fn reviews_that_make_no_sense_are_answered() {
    let mut old = review("v1", &[]);
    old["apiVersion"] = json!("apiextensions.k8s.io/v1beta1");
    let mut empty = review("v1", &[]);
    empty.as_object_mut().unwrap().remove("request");
    let cases = [("{".to_owned(), ""), (old.to_string(), "4711"), (empty.to_string(), "")];
    for (body, uid) in cases {
        let response = serve::call(&server().handler(), post("/convert", body)).await;
        let review = read(&response);
        assert_eq!(review["apiVersion"], "apiextensions.k8s.io/v1");
        assert_eq!(review["response"]["result"]["code"], 400);
        assert_eq!(review["response"]["uid"], uid);
    }
}

#[test]
fn versions_of_different_kinds_do_not_belong_together() {
    let twice = Conversion::hub::<Shop>().spoke::<BetaShop>().spoke::<BetaShop>();
    let error = WebhookServer::builder("shop").converts(twice).build().err().unwrap();
    assert!(error.to_string().contains("v1beta1 is there twice"), "{error}");
}
