//! A server of one's own behind the aggregation layer: the pipeline of [`ApiServer`] over resources
//! of one's own, which are stored in any store, or [computed](Computed) when somebody asks.
//!
//! Resources are described as CustomResourceDefinitions, so that schema, columns, short names and
//! OpenAPI are what one knows, and `kube`'s derive writes them. The definitions themselves are not
//! served. Who asks says the server in front, by [headers](crate::authentication::FrontProxy) over
//! the network or directly in the same process; who may, it is asked about
//! ([`Extension::reviewed_by`]). Without anybody to ask, only `system:masters` may do anything.

use std::sync::Arc;

use serde_json::Value;
use steersman_rules::metadata;
use steersman_store::memory::MemoryStore;
use steersman_store::{Expected, RangeRequest, Store, WriteRequest};
use tokio_util::sync::CancellationToken;

use crate::admission_plugins::PluginSelection;
use crate::authentication::Authentication;
use crate::authz::AuthorizationMode;
use crate::clock::Clock;
use crate::registry::Registry;
use crate::server::{ApiServer, Config};
use crate::state::extended::{Computed, Extended};
use crate::state::reviews::{Reviewer, Reviews};
use crate::status::{Result, Status};
use crate::write::create::create_object;
use crate::write::{Tracking, Writer};

const DEFINITIONS: [&str; 3] = ["apiextensions.k8s.io", "v1", "customresourcedefinitions"];

/// A server that extends another, before it starts.
pub struct Extension {
    config: Config,
    definitions: Vec<Value>,
    extended: Extended,
}

impl std::fmt::Debug for Extension {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Extension").finish_non_exhaustive()
    }
}

impl Extension {
    /// One that serves nothing yet, and keeps what it keeps in memory.
    pub fn new(clock: Clock) -> Self {
        Self::over(Arc::new(MemoryStore::new()), clock)
    }

    /// One that serves nothing yet, over a store.
    pub fn over(store: Arc<dyn Store>, clock: Clock) -> Self {
        let config = Config {
            authorization: AuthorizationMode::Rbac,
            // Namespaces are the other server's.
            admission: PluginSelection::without_controllers()
                .by_default("NamespaceLifecycle", false),
            ..Config::new(store, clock)
        };
        Self { config, definitions: Vec::new(), extended: Extended::default() }
    }

    /// Serves the resource of a CustomResourceDefinition; its objects are stored.
    #[must_use]
    pub fn serving(mut self, definition: Value) -> Self {
        self.definitions.push(definition);
        self
    }

    /// Serves the resource of a CustomResourceDefinition; its objects are computed. They can be
    /// read, and [watched](Computed::watch_period) if they say so.
    #[must_use]
    pub fn computing(mut self, definition: Value, computed: impl Computed) -> Self {
        let name = metadata::text(&definition, "name").to_owned();
        self.extended.computed.insert(name, Arc::new(computed));
        self.serving(definition)
    }

    /// Asks somebody who may do what, and whom the tokens stand for that clients of the network show
    /// which the server in front has not passed on; answers hold for ten seconds.
    #[must_use]
    pub fn reviewed_by(mut self, reviewer: impl Reviewer) -> Self {
        self.extended.reviews = Some(Reviews::by(Arc::new(reviewer)));
        self
    }

    /// Knows users of the network like this; the server in front is an
    /// [`Authentication::front_proxy`].
    #[must_use]
    pub fn authenticating(mut self, authentication: Authentication) -> Self {
        self.config.authentication = authentication;
        self
    }

    /// Lets everybody do everything: the server in front, which is in the same process, has decided
    /// who may ask.
    #[must_use]
    pub fn allowing_all(mut self) -> Self {
        self.config.authorization = AuthorizationMode::AlwaysAllow;
        self
    }

    /// Ends watches when cancelled.
    #[must_use]
    pub fn ending_with(mut self, shutdown: CancellationToken) -> Self {
        self.config.shutdown = shutdown;
        self
    }

    /// Starts to serve. A definition that is wrong is refused.
    pub async fn start(self) -> Result<ApiServer> {
        let Self { config, definitions, extended } = self;
        let started = ApiServer::assemble(config, Registry::of_definitions(), extended).await?;
        let server = started.server();
        let table = server.registry.table();
        let [group, version, plural] = DEFINITIONS;
        let resource = table.get(group, version, plural).ok_or_else(Status::no_such_resource)?;
        // What an earlier start served counts no more; its objects stay where they are.
        let request = RangeRequest { prefix: resource.prefix(""), ..RangeRequest::default() };
        for old in server.store.range(request).await?.entries {
            server.store.write(WriteRequest::delete(old.key, Expected::Any)).await?;
        }
        for definition in definitions {
            let writer = Writer::internal(server, resource);
            create_object(&writer, "", definition, Tracking::Record).await?;
        }
        server.registry.hide_builtin();
        Ok(started)
    }
}
