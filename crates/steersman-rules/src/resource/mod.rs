//! What a kind is to the server: data. Built-in kinds ([`crate::kinds`]) and custom resources take
//! the same road.

mod metadata_checks;
pub mod selectable;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

pub use metadata_checks::Again;

use crate::rules::Rules;
use crate::schema::{Schema, Text};
use crate::table::Column;

/// A served resource: one kind in one version of one group, with its names and abilities.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The API group; empty for core.
    pub group: Text,
    /// The version, such as `v1`.
    pub version: Text,
    /// The kind, such as `Deployment`.
    pub kind: Text,
    /// The kind of a list, such as `DeploymentList`.
    pub list_kind: Text,
    /// The name in paths, such as `deployments`.
    pub plural: Text,
    /// The singular name, such as `deployment`.
    pub singular: Text,
    /// What kubectl also accepts, such as `deploy`.
    pub short_names: Vec<Text>,
    /// Groups of kinds such as `all`.
    pub categories: Vec<Text>,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// What may be done; kinds such as `TokenReview` only know `create`.
    pub verbs: &'static [Verb],
    /// The paths below an object, such as `status`.
    pub subresources: Vec<Subresource>,
    /// Where objects are stored, below `/registry/`: `pods`, `services/specs`, `group/plural`.
    /// Versions and groups that share storage (events) share this.
    pub storage_prefix: Text,
    /// Whether PUT creates an object that does not exist.
    pub create_on_update: bool,
    /// Whether PUT without a resourceVersion is allowed.
    pub unconditional_update: bool,
    /// Whether `metadata.generation` counts changes of the desired state.
    pub has_generation: bool,
    /// Whether what is answered to a status has columns.
    pub has_status_table: bool,
    /// The fields, for apply, pruning and validation.
    pub schema: Schema,
    /// Defaults and validation that need code; few kinds have none.
    pub rules: &'static Rules,
    /// What `kubectl get` shows between NAME and AGE; empty means just those two.
    pub columns: Arc<[Column]>,
    /// Dotted paths usable in field selectors besides `metadata.name` and `metadata.namespace`.
    pub selectable_fields: Vec<Text>,
    /// What clients of this version are warned of, whatever they ask for.
    pub deprecation: Option<Text>,
    /// The `apiVersion` in which objects of a custom resource are stored.
    pub stored_as: Option<Text>,
    /// What knows the versions of a custom resource and converts between them, where that takes more
    /// than to change `apiVersion`.
    pub converter: Option<ConverterHandle>,
    /// What the server itself does when an object is written, if anything.
    pub effect: Option<Effect>,
}

/// Who converts a custom resource: something of the server's, which means nothing here. A resource
/// carries it, so that whoever began to read by a definition ends by the same, also when the
/// definition is gone.
#[derive(Clone)]
pub struct ConverterHandle(Arc<dyn Any + Send + Sync>);

impl ConverterHandle {
    /// A handle to something of the server's.
    pub fn new<T: Any + Send + Sync>(converter: Arc<T>) -> Self {
        Self(converter)
    }

    /// What it is a handle to, if it is of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for ConverterHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConverterHandle")
    }
}

/// The kinds whose objects mean something to the server itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Judges or changes what is written.
    AdmissionPolicy,
    /// Says which server answers for a group and version.
    ApiService,
    /// Serves what a custom resource definition says.
    Definition,
    /// Asks for devices, which not everybody may do, or may say to be given.
    DeviceClaim,
    /// Says since when devices are tainted by it.
    DeviceTaintRule,
    /// Belongs to a definition, which must stay while it is there.
    Instance,
    /// Gets its name from the server where nobody names it.
    LimitRange,
    /// Says who may do what.
    Permission,
    /// Says when its phase changed.
    PersistentVolume,
    /// Says since when its devices are tainted.
    ResourceSlice,
    /// Holds addresses and node ports.
    Service,
    /// Says who asked for it, and keeps decisions apart from certificates.
    SigningRequest,
    /// Says who is asked about writes.
    WebhookConfiguration,
}

impl Effect {
    /// How many there are.
    pub const COUNT: usize = Self::WebhookConfiguration as usize + 1;
}

/// What may be done with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the verbs of the API")]
pub enum Verb {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

impl Verb {
    /// The name by which rules and messages know it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }
}

/// A path below an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// The last part of the path, such as `scale`.
    pub name: Text,
    /// The kind it speaks; the parent's kind for `status`, `Scale` for `scale`.
    pub kind: Text,
    /// Group and version of that kind where they differ from the parent's.
    pub group_version: Option<(Text, Text)>,
    /// What may be done with it.
    pub verbs: &'static [Verb],
    /// The fields of `metadata` that are written with the part; the others stay as they are.
    pub metadata: &'static [&'static str],
    /// For `scale`: where replicas and selector are in the parent.
    pub scale: Option<ScalePaths>,
}

/// The subresources that lead through the server to a node.
pub const STREAMED: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

impl Subresource {
    /// Whether it leads through the server to a node: it is streamed, and speaks no kind.
    pub fn is_connection(&self) -> bool {
        STREAMED.contains(&self.name.as_ref())
    }
}

/// Where a scalable kind keeps what the `scale` subresource shows, as dotted paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The wanted number, such as `spec.replicas`.
    pub spec_replicas: Text,
    /// The observed number, such as `status.replicas`.
    pub status_replicas: Text,
    /// A label selector, as an object or a string, such as `spec.selector`.
    pub selector: Option<Text>,
}

/// Where one object is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
}

/// An object as errors name it.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The API group; empty for core.
    pub group: &'a str,
    /// The plural name of the resource, or the kind where validation speaks.
    pub resource: &'a str,
    /// The object's name; may be empty.
    pub name: &'a str,
}

impl Named<'_> {
    /// `pods` or `deployments.apps`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }
}

impl Resource {
    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `pods` or `deployments.apps`, as error messages name a resource.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_string()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// Whether what a path of this resource answers has columns: an empty `subresource` is the
    /// resource itself. What can be listed has, and so have most statuses; reviews and what is
    /// done by creating something (bindings, evictions, tokens) have none.
    pub fn has_table(&self, subresource: &str) -> bool {
        match subresource {
            "" => self.verbs.contains(&Verb::List),
            "scale" => true,
            "status" => self.has_status_table,
            _ => false,
        }
    }

    /// Whether status is written through its own path only.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// The folder in the store: of one namespace, or of all when it is empty.
    pub fn prefix(&self, namespace: &str) -> String {
        self.key(Place { namespace, name: "" })
    }

    /// The key of one object in the store.
    pub fn key(&self, Place { namespace, name }: Place<'_>) -> String {
        let is_within = self.namespaced && !namespace.is_empty();
        let (namespace, slash) = if is_within { (namespace, "/") } else { ("", "") };
        // Every request comes by here, and `format!` takes ten times as long.
        ["/registry/", &self.storage_prefix, "/", namespace, slash, name].concat()
    }

    /// Where the object of a key is: its end is `namespace/name`, or just the name.
    pub fn place<'a>(&self, key: &'a str) -> Place<'a> {
        let (rest, name) = key.rsplit_once('/').unwrap_or(("", key));
        let namespace = rest.rsplit_once('/').map_or(rest, |(_, namespace)| namespace);
        Place { namespace: if self.namespaced { namespace } else { "" }, name }
    }

    /// An object as most errors name it: by resource.
    pub fn named<'a>(&'a self, name: &'a str) -> Named<'a> {
        Named { group: &self.group, resource: &self.plural, name }
    }

    /// An object as validation names it: by kind.
    pub fn named_kind<'a>(&'a self, name: &'a str) -> Named<'a> {
        // Events of either group are those of the core group to whoever checks them.
        let group = if self.group == "events.k8s.io" { "" } else { &self.group };
        Named { group, resource: &self.kind, name }
    }

    /// Whether a definition serves it.
    pub fn is_custom(&self) -> bool {
        self.stored_as.is_some()
    }

    /// Whether this is a kind of this group and plural name.
    pub fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }
}
