//! What an expression may refer to.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::library::{Functions, Library, Overload, functions};
use crate::parser::Syntax;
use crate::shape::Type;
use crate::shape::{DYN, ObjectShape, Shape, ShapeKind};

/// Variables, types and functions: what expressions are compiled against. Cheap to copy.
///
/// ```
/// use serde_json::json;
/// use steersman_cel::{Activation, Budget, Env, Shape, ShapeKind};
///
/// let spec = Shape::object("Spec", [("replicas".to_owned(), Shape::new(ShapeKind::Int))]);
/// let env = Env::kubernetes().variable("self", spec);
/// let program = env.compile("self.replicas > 1")?;
///
/// let object = json!({"replicas": 3});
/// let outcome = program.evaluate(&Activation::new().json("self", &object), Budget::default());
/// assert_eq!(outcome.value.unwrap().as_bool(), Some(true));
/// assert_eq!(outcome.cost, 3);
///
/// let issues = env.compile("self.replica > 1").unwrap_err();
/// assert!(issues.to_string().contains("undefined field 'replica'"));
/// # Ok::<(), steersman_cel::Issues>(())
/// ```
#[derive(Clone, Debug)]
pub struct Env {
    functions: Arc<Functions>,
    pub(crate) variables: BTreeMap<Arc<str>, Variable>,
    objects: HashMap<Arc<str>, Arc<ObjectShape>>,
    pub(crate) container: Arc<str>,
    pub(crate) syntax: Syntax,
    /// Whether literals must make sense: times, patterns, lists of one type.
    pub(crate) validates_literals: bool,
    pub(crate) unchecked: bool,
    /// Whether `Object` and `Object.any.path` are types with any fields.
    patches: bool,
    /// Whether Kubernetes' costs apply, or cel-go's own.
    pub(crate) kubernetes_costs: bool,
}

/// A declared variable.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) ty: Type,
    pub(crate) shape: Arc<Shape>,
}

impl Env {
    /// The standard library and others.
    #[must_use]
    pub fn new(libraries: &[Library]) -> Self {
        let has = |library| libraries.contains(&library);
        let syntax = Syntax {
            optionals: has(Library::Optionals),
            escaped_names: false,
            two_variables: has(Library::TwoVariables),
            bindings: has(Library::Bindings),
            math: has(Library::Math),
            lists: has(Library::Lists),
        };
        Self {
            functions: functions(libraries),
            variables: BTreeMap::new(),
            objects: HashMap::new(),
            container: "".into(),
            syntax,
            validates_literals: false,
            unchecked: false,
            patches: false,
            kubernetes_costs: false,
        }
    }

    /// What Kubernetes 1.36 offers, with its costs and its strictness.
    #[must_use]
    pub fn kubernetes() -> Self {
        let strict = Self::new(&Library::KUBERNETES);
        Self { validates_literals: true, kubernetes_costs: true, ..strict }
    }

    /// The same, with more libraries.
    #[must_use]
    pub fn kubernetes_with(more: &[Library]) -> Self {
        let libraries: Vec<Library> =
            Library::KUBERNETES.into_iter().chain(more.iter().copied()).collect();
        let strict = Self::new(&libraries);
        Self { validates_literals: true, kubernetes_costs: true, ..strict }
    }

    /// The same, with what changes of objects are written in: `Object{…}`, `Object.spec{…}`, and so
    /// on, with any fields, and `JSONPatch{…}`, with `jsonpatch.escapeKey`.
    #[must_use]
    pub fn kubernetes_patches() -> Self {
        let libraries: Vec<Library> =
            Library::KUBERNETES.into_iter().chain([Library::JsonPatch]).collect();
        let fields = [
            ("op", Type::String),
            ("path", Type::String),
            ("from", Type::String),
            ("value", Type::Dyn),
        ];
        let fields = fields.into_iter().map(|(name, ty)| (name.to_owned(), ty));
        let patch = Arc::new(ObjectShape::of_types("JSONPatch", fields));
        let strict = Self::new(&libraries).object(&patch);
        Self { validates_literals: true, kubernetes_costs: true, patches: true, ..strict }
    }

    /// With names between backquotes.
    #[must_use]
    pub fn escaped_names(mut self) -> Self {
        self.syntax.escaped_names = true;
        self
    }

    /// Without types: what does not fit, or is not there, is found when an expression runs.
    #[must_use]
    pub fn unchecked(mut self) -> Self {
        self.unchecked = true;
        self
    }

    /// With a variable whose values have a shape.
    #[must_use]
    pub fn variable(mut self, name: &str, shape: Shape) -> Self {
        self.declare(name, Arc::new(shape));
        self
    }

    /// With a variable whose values have a shape that others share.
    #[must_use]
    pub fn shared_variable(mut self, name: &str, shape: Arc<Shape>) -> Self {
        self.declare(name, shape);
        self
    }

    /// With a variable that is no JSON, such as `authorizer`.
    #[must_use]
    pub fn typed_variable(mut self, name: &str, ty: Type) -> Self {
        let variable = Variable { ty, shape: Arc::new(DYN.clone()) };
        self.variables.insert(name.into(), variable);
        self
    }

    /// With a variable that is an object of which nothing but the types of its fields is known: they
    /// are seen as they stand in JSON, or are [computed](crate::Fields) when they are asked for.
    #[must_use]
    pub fn object_variable(mut self, name: &str, shape: ObjectShape) -> Self {
        let shape = Arc::new(shape);
        self.objects.insert(Arc::clone(&shape.name), Arc::clone(&shape));
        self.typed_variable(name, Type::Object(shape))
    }

    /// With a type of objects that expressions may construct, and those of its fields.
    #[must_use]
    pub fn object(mut self, shape: &Arc<ObjectShape>) -> Self {
        self.register(shape);
        self
    }

    /// Names are looked up in this namespace first.
    #[must_use]
    pub fn in_container(mut self, name: &str) -> Self {
        self.container = name.into();
        self
    }

    fn declare(&mut self, name: &str, shape: Arc<Shape>) {
        self.register_within(&shape);
        let variable = Variable { ty: shape.ty(), shape };
        self.variables.insert(name.into(), variable);
    }

    fn register_within(&mut self, shape: &Shape) {
        match &shape.kind {
            ShapeKind::List(of, _) | ShapeKind::Map(of) => self.register_within(of),
            ShapeKind::Object(object) => self.register(object),
            _ => {}
        }
    }

    fn register(&mut self, object: &Arc<ObjectShape>) {
        self.objects.insert(Arc::clone(&object.name), Arc::clone(object));
        for field in object.fields.values() {
            self.register_within(&field.shape);
        }
    }

    /// A function by its name, with its overloads.
    pub(crate) fn function(&self, name: &str) -> Option<(&'static str, &[Overload])> {
        let found = |candidate: &str| {
            let (name, overloads) = self.functions.get_key_value(candidate)?;
            Some((*name, overloads.as_slice()))
        };
        if self.container.is_empty() {
            return found(name.strip_prefix('.').unwrap_or(name));
        }
        self.candidates(name).iter().find_map(|candidate| found(candidate))
    }

    /// What a name may be short for, the longest first.
    pub(crate) fn candidates(&self, name: &str) -> Vec<String> {
        if let Some(absolute) = name.strip_prefix('.') {
            return vec![absolute.to_owned()];
        }
        let mut candidates = Vec::with_capacity(1);
        let mut container = &*self.container;
        while !container.is_empty() {
            candidates.push(format!("{container}.{name}"));
            container = container.rsplit_once('.').map_or("", |(outer, _)| outer);
        }
        candidates.push(name.to_owned());
        candidates
    }

    pub(crate) fn type_named(&self, name: &str) -> Option<Type> {
        if let Some(object) = self.objects.get(name) {
            return Some(Type::Object(Arc::clone(object)));
        }
        if self.patches && (name == "Object" || name.starts_with("Object.")) {
            let object = ObjectShape { open: true, ..ObjectShape::empty(name) };
            return Some(Type::Object(Arc::new(object)));
        }
        Some(match name {
            "bool" => Type::Bool,
            "bytes" => Type::Bytes,
            "double" => Type::Double,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "string" => Type::String,
            "list" => Type::list(Type::Dyn),
            "map" => Type::map(Type::Dyn, Type::Dyn),
            "null_type" => Type::Null,
            "type" => Type::Type(None),
            "google.protobuf.Timestamp" => Type::Timestamp,
            "google.protobuf.Duration" => Type::Duration,
            "optional_type" if self.syntax.optionals => Type::optional(Type::Dyn),
            "net.IP" | "net.CIDR" if self.functions.contains_key("ip") => Type::read(name),
            _ => return None,
        })
    }
}
