//! The requests of one schema on their way to their level.

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::counts::Counts;
use super::level::{Begun, Level};
use super::schema::FlowSchema;
use super::work::Work;
use crate::authz::Attributes;

/// Tells a client by which schema and which level it is served. Their names are nobody's business.
const SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// A schema, and the level that it leads to.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(super) schema: Arc<FlowSchema>,
    pub(super) level: Arc<Level>,
    exempt: bool,
    headers: [HeaderValue; 2],
    pub(super) counts: Arc<Counts>,
}

impl Flow {
    pub(super) fn new(
        schema: Arc<FlowSchema>,
        level: Arc<Level>,
        level_uid: &str,
        exempt: bool,
        counts: Arc<Counts>,
    ) -> Self {
        let header =
            |uid: &str| HeaderValue::from_str(uid).unwrap_or_else(|_| HeaderValue::from_static(""));
        let headers = [header(&schema.uid), header(level_uid)];
        Self { schema, level, exempt, headers, counts }
    }

    /// Whether its requests never wait.
    pub(crate) fn is_exempt(&self) -> bool {
        self.exempt
    }

    /// How many seats one of its requests may have.
    pub(crate) fn width_max(&self) -> u32 {
        self.level.width_max()
    }

    /// A request begins.
    pub(crate) fn begin(&self, asked: &Attributes<'_>, work: Work) -> Begun {
        if self.exempt {
            return Begun::Seated(self.level.begin_exempt(&self.counts, work));
        }
        self.level.begin(&self.counts, work, self.hash(asked))
    }

    /// A request is refused; says after how many seconds it should come again.
    pub(crate) fn refuse(&self) -> u64 {
        self.level.refuse()
    }

    /// Tells the client whose request it was.
    pub(crate) fn mark(&self, headers: &mut HeaderMap) {
        let [schema, level] = &self.headers;
        headers.insert(SCHEMA, schema.clone());
        headers.insert(LEVEL, level.clone());
    }

    /// What the flow of a request is dealt its queues by.
    fn hash(&self, asked: &Attributes<'_>) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write(self.schema.name.as_bytes());
        hasher.write_u8(0);
        hasher.write(self.schema.distinguisher(asked).as_bytes());
        hasher.finish()
    }
}
