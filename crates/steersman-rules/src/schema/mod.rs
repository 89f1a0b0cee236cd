//! The shape of a kind's documents: fields, list types, merge keys.
//!
//! A [`Schema`] comes from the table of built-in types, from a CustomResourceDefinition's
//! structural schema, or is untyped. [`crate::apply`] and [`crate::patch`] merge by it; the request
//! pipeline prunes, defaults and validates by it.

pub mod builtin;
mod correlation;
mod decode;
mod defaults;
mod defined;
mod embedded;
mod expressions;
mod format;
mod index;
mod junctors;
mod list_type;
mod node;
mod normal;
mod number;
mod pattern;
mod restore;
mod structural;
#[cfg(test)]
mod tests;
mod time;
mod unknown;
mod unset;
mod validate;
mod way;

use std::fmt::{self, Debug};
use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Map, Value};

use self::defined::{Built, Defined};
use self::way::Way;
use crate::field::{Errors, FieldError, FieldErrorKind};

pub use builtin::{kind as builtin_kind, named as builtin_named, object as builtin_object};
pub use defaults::{ADDED_MAX, DefaultsTooLarge};
pub use expressions::{RuleCost, rule_costs};
pub(crate) use expressions::{check as check_expressions, resolved_field_path};
pub(crate) use format::is_known as is_known_format;
pub use node::{
    ANY, Field, List, ListKind, Merge, Node, Object, Relation, Scalar, Shape, Text, Unset,
};
pub(crate) use pattern::Pattern;
pub(crate) use structural::node as structural_node;
pub use unknown::FINDINGS_MAX;
pub(crate) use unset::settle;
use validate::Change;

/// The shape of one kind's documents; cheap to clone.
#[derive(Clone)]
pub struct Schema {
    source: Source,
    /// The resourceVersion at which it came to be; what was written before may not have its
    /// defaults.
    since: u64,
}

/// Where a shape comes from.
#[derive(Clone)]
enum Source {
    /// It is there: that of a built-in kind, or none.
    Known(Arc<Node>),
    /// A definition, of which it is made when it is used.
    Defined(Arc<Defined>),
}

/// The shape of a whole object, while somebody uses it.
pub(crate) enum Root<'a> {
    Known(&'a Node),
    Built(Arc<Built>),
}

impl Deref for Root<'_> {
    type Target = Node;

    fn deref(&self) -> &Node {
        match self {
            Self::Known(node) => node,
            Self::Built(built) => &built.root,
        }
    }
}

impl Root<'_> {
    /// Whether there are resources in it.
    fn has_embedded(&self) -> bool {
        matches!(self, Self::Built(built) if built.has_embedded)
    }

    /// Whether there are lists in it in which nothing may be twice.
    fn has_unique(&self) -> bool {
        matches!(self, Self::Built(built) if built.has_unique)
    }
}

/// What is wrong with an object, and what was so before.
#[derive(Debug, Default)]
pub struct Mistakes {
    /// What is wrong.
    pub errors: Vec<FieldError>,
    /// What is wrong with parts that have not changed: whoever writes is told, and may.
    pub warnings: Vec<String>,
}

/// What of a custom resource is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    Status,
}

/// The mistakes in a value by a part of a structural schema, told at a place.
pub(crate) fn mistakes(node: &Node, value: &Value, at: &str) -> Vec<FieldError> {
    placed(node, Change { new: value, old: None }, at).into()
}

/// What keeps resources in a value from being such, named from that value. What cannot be read as one is
/// not looked at further.
pub(crate) fn embedded_mistakes(node: &Node, value: &Value) -> Vec<FieldError> {
    if let Some(unreadable) = embedded::unreadable(node, value, &Way::ROOT) {
        return vec![unreadable];
    }
    let mut errors = Errors::default();
    embedded::validate(node, value, &Way::ROOT, &mut errors);
    errors.into()
}

/// The mistakes in a value, told as those of what stands at a place of an object. Their texts begin at the
/// value.
fn placed(node: &Node, change: Change<'_>, at: &str) -> Errors {
    let mut found = Errors::default();
    validate::validate(node, change, &Way::ROOT, &mut found);
    let told = |mistake: FieldError| {
        let field = match (at, mistake.field.trim_start_matches('.')) {
            ("", "") => "<nil>".to_owned(),
            ("", below) => below.to_owned(),
            (at, "" | "<nil>") => at.to_owned(),
            (at, below) => format!("{at}.{below}"),
        };
        FieldError { field, ..mistake }
    };
    found.into_iter().map(told).collect()
}

/// What the rules in a part of a structural schema say of a value, named from that value.
pub(crate) fn rule_mistakes(openapi_v3_schema: &Value, value: &Value) -> Vec<FieldError> {
    if !expressions::has_rules(openapi_v3_schema) {
        return Vec::new();
    }
    let is_root = openapi_v3_schema["x-kubernetes-embedded-resource"] == true;
    let Some(rules) = expressions::Level::of_schema(openapi_v3_schema, is_root) else {
        return Vec::new();
    };
    // As a value that stays, for only then are rules heard that compare the two; then as a new one.
    let evaluate = |old| -> Vec<FieldError> {
        expressions::evaluate(&rules, None, Change { new: value, old }).errors.into()
    };
    let found = evaluate(Some(value));
    if found.is_empty() { evaluate(None) } else { found }
}

/// Whether a value has fields that a part of a structural schema does not know. Those in metadata do not
/// count.
pub(crate) fn has_unknown_fields(node: &Node, value: &Value) -> bool {
    unknown::any(node, value)
}

const UNCHECKED: &str = "some validation rules were not checked because the object was invalid; \
                         correct the existing errors to complete validation";

/// Whether rules cannot be trusted to see what they expect because of a mistake.
fn hides_others(error: &FieldError) -> bool {
    matches!(
        error.kind,
        FieldErrorKind::NotSupported
            | FieldErrorKind::Required
            | FieldErrorKind::TooLong
            | FieldErrorKind::TooMany
            | FieldErrorKind::TypeInvalid
    )
}

impl Schema {
    /// The schema of a kind that Kubernetes defines; `None` if there is no such kind.
    pub fn builtin(group: &str, version: &str, kind: &str) -> Option<Self> {
        let root = if group.is_empty() {
            builtin::kind(version, kind)
        } else {
            builtin::kind(&format!("{group}/{version}"), kind)
        };
        root.map(Self::new)
    }

    /// The schema of a custom resource, from `openAPIV3Schema` of its definition.
    pub fn structural(openapi_v3_schema: &Value) -> Self {
        Self { source: Source::Defined(Arc::new(Defined::new(openapi_v3_schema))), since: 0 }
    }

    /// No schema: types are deduced from values (maps granular, lists atomic).
    pub fn untyped() -> Self {
        Self::new(Node::new(Shape::Any))
    }

    /// Removes fields that the schema does not know.
    pub fn prune(&self, object: &mut Value) {
        unknown::prune(&self.root(), object);
    }

    /// Fills in the defaults that the schema states, and drops nulls that mean "not set". Of a
    /// built-in kind that is [`Self::settle`]. A few defaults in a few items of lists can add up to
    /// anything, so what they add is bounded; an object that would grow beyond is left unfinished.
    pub fn apply_defaults(&self, object: &mut Value) -> Result<(), DefaultsTooLarge> {
        if self.is_typed() {
            defaults::check_items(object)?;
            settle(&self.root(), object);
            Ok(())
        } else {
            defaults::apply(&self.root(), object)
        }
    }

    /// An object in which nothing is set: what a new one is compared with.
    pub(crate) fn empty(&self) -> Value {
        let mut object = Value::Object(Map::new());
        self.settle(&mut object);
        object
    }

    /// Gives an object of a built-in kind the fields that are always written, and takes those
    /// from it in which nothing is set. Other kinds have no such fields.
    pub fn settle(&self, object: &mut Value) {
        if self.is_typed() {
            settle(&self.root(), object);
        }
    }

    /// The paths of fields that the schema does not know, such as `spec.foo`.
    pub fn unknown_fields(&self, object: &Value) -> Vec<String> {
        let mut found = Vec::new();
        unknown::find(&self.root(), object, &Way::ROOT, &mut found);
        found
    }

    /// The mistakes in a custom resource, but for those that its definition's rules find.
    pub fn validate(&self, object: &Value) -> Vec<FieldError> {
        self.by_shape(object, None, Part::All)
    }

    /// The mistakes in a custom resource that is new or replaces another: by its schema, and if
    /// that can be read, by the rules of its definition. What has not changed is not refused.
    pub fn validate_change(&self, new: &Value, old: Option<&Value>) -> Mistakes {
        self.by_rules(self.by_shape(new, old, Part::All), new, old)
    }

    /// The mistakes in a custom resource of which the status is written.
    pub fn validate_status_change(&self, new: &Value, old: &Value) -> Mistakes {
        self.by_rules(self.by_shape(new, Some(old), Part::Status), new, Some(old))
    }

    fn by_shape(&self, new: &Value, old: Option<&Value>, part: Part) -> Vec<FieldError> {
        let root = self.root();
        let mut found = match part {
            Part::All => placed(&root, Change { new, old }, ""),
            Part::Status => status_mistakes(&root, Change { new, old }),
        };
        // What is embedded is held to this on every update, changed or not.
        if root.has_embedded() && part == Part::All {
            embedded::validate(&root, new, &Way::ROOT, &mut found);
        }
        // Lists that were wrong before may stay so, all of them.
        let repeated = repeated_in(&root, new);
        if !repeated.is_empty() && old.is_none_or(|old| repeated_in(&root, old).is_empty()) {
            found.extend(repeated);
        }
        found.into()
    }

    fn by_rules(&self, mut errors: Vec<FieldError>, new: &Value, old: Option<&Value>) -> Mistakes {
        let Source::Defined(defined) = &self.source else {
            return Mistakes { errors, warnings: Vec::new() };
        };
        if !defined.has_rules {
            return Mistakes { errors, warnings: Vec::new() };
        }
        if errors.iter().any(hides_others) {
            let text = format!("Invalid value: null: {UNCHECKED}");
            let field = "<nil>".to_owned();
            errors.push(FieldError { kind: FieldErrorKind::Invalid, field, text });
            return Mistakes { errors, warnings: Vec::new() };
        }
        let built = defined.built();
        let Some(rules) = defined.rules(&built) else {
            return Mistakes { errors, warnings: Vec::new() };
        };
        let found = expressions::evaluate(rules, Some(&built.root), Change { new, old });
        errors.extend(found.errors);
        Mistakes { errors, warnings: found.warnings }
    }

    /// Values of the wrong JSON type in an object of a built-in kind, as the text a decoder gives
    /// (`json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type
    /// int32`). A decoder would report the first. Of custom resources only the metadata is
    /// decoded; [`Self::validate`] checks the rest.
    pub fn type_errors(&self, object: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        let root = self.root();
        if self.is_typed() {
            decode::check(&root, object, None, &mut errors);
        } else {
            let node = root.child("metadata");
            let place = decode::Place::metadata();
            decode::check(node, &object["metadata"], Some(&place), &mut errors);
            if root.has_embedded() && errors.is_empty() {
                let unreadable = embedded::unreadable(&root, object, &Way::ROOT);
                errors.extend(unreadable.map(|mistake| mistake.message()));
            }
        }
        errors
    }

    /// Wraps numbers that are too large for their field, as Kubernetes does where it fills a
    /// struct from a document.
    pub fn wrap_integers(&self, object: &mut Value) {
        if self.is_typed() {
            restore::wrap(&self.root(), object);
        }
    }

    /// The first value of the wrong type in an object of a built-in kind that was patched as a
    /// document (`cannot restore struct from: string`).
    pub fn restore_mistake(&self, object: &Value) -> Option<String> {
        self.is_typed().then(|| restore::mistake(&self.root(), object, None)).flatten()
    }

    /// Brings an object of a built-in kind into the form that decoding and encoding it gives.
    /// Of custom resources that is only the metadata.
    pub fn normalise(&self, object: &mut Value) {
        if self.is_typed() {
            normal::normalise(&self.root(), object);
        } else if let Some(metadata) = object.get_mut("metadata") {
            normal::normalise(self.root().child("metadata"), metadata);
        }
    }

    /// Brings the numbers of a custom resource into the form in which Go writes them. Those of a
    /// built-in kind have that of their field.
    pub fn shorten_numbers(&self, object: &mut Value) {
        if !self.is_typed() {
            normal::without_fractions(object);
        }
    }

    /// The schema of a type that is not a kind, such as `meta.v1.DeleteOptions`.
    pub fn builtin_type(name: &str) -> Option<Self> {
        builtin::named(name).map(Self::new)
    }

    /// The same schema, known to hold since a resourceVersion.
    #[must_use]
    pub fn since(self, resource_version: u64) -> Self {
        Self { since: resource_version, ..self }
    }

    /// The resourceVersion since which it is known to hold; zero if it always does.
    pub fn resource_version(&self) -> u64 {
        self.since
    }

    /// Whether something written at a resourceVersion was written under an older schema.
    pub fn is_newer_than(&self, written: u64) -> bool {
        self.since > written
    }

    /// Whether what objects are held to has to be compiled, and may cost more than follows from
    /// their size.
    pub fn has_costly_checks(&self) -> bool {
        matches!(&self.source, Source::Defined(defined)
            if defined.has_patterns || defined.has_rules)
    }

    /// Whether this is the schema of a kind that Kubernetes defines.
    pub fn is_typed(&self) -> bool {
        matches!(&self.source, Source::Known(node) if matches!(node.shape, Shape::Named(_)))
    }

    /// Lets go of what was made of a definition and was not used since the round before: it is
    /// made again when it is needed. Schemas that are shared may be asked more than once in a
    /// round. Says whether anything is still held.
    pub fn rest(&self, round: u64) -> bool {
        matches!(&self.source, Source::Defined(defined) if defined.rest(round))
    }

    /// Whether something is held that was made of a definition. What is built in is always there.
    pub fn is_in_use(&self) -> bool {
        match &self.source {
            Source::Known(_) => true,
            Source::Defined(defined) => defined.is_in_use(),
        }
    }

    /// Whether objects can be held to it at once, to its rules too if those are asked for: what is made
    /// of a definition may have to be made first, which can take long.
    pub fn is_at_hand(&self, with_rules: bool) -> bool {
        match &self.source {
            Source::Known(_) => true,
            Source::Defined(defined) => defined.is_at_hand(with_rules),
        }
    }

    /// The shape of the whole object.
    pub(crate) fn root(&self) -> Root<'_> {
        match &self.source {
            Source::Known(node) => Root::Known(node),
            Source::Defined(defined) => Root::Built(defined.built()),
        }
    }

    fn new(root: Node) -> Self {
        Self { source: Source::Known(Arc::new(root)), since: 0 }
    }
}

/// The mistakes in the status of an object. Nothing else of the object is looked at, and the texts speak
/// of the status as if it were all.
fn status_mistakes(root: &Node, change: Change<'_>) -> Errors {
    let Some((status, new)) = root.field("status").zip(change.new.get("status")) else {
        return Errors::default();
    };
    let old = change.old.and_then(|old| old.get("status"));
    placed(&status.node, Change { new, old }, "status")
}

/// What is twice where it may not be.
fn repeated_in(root: &Root<'_>, object: &Value) -> Errors {
    let mut found = Errors::default();
    if root.has_unique() {
        list_type::validate(root, object, &Way::ROOT, &mut found);
    }
    found
}

impl Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Custom schemas are long; which kind they belong to is known where they are held.
        let name = match &self.source {
            Source::Known(node) => node.object().map_or("untyped", |object| &*object.name),
            Source::Defined(_) => "",
        };
        f.debug_tuple("Schema").field(&name).finish()
    }
}
