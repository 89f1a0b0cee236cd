//! `DenyServiceExternalIPs` lets no Service take addresses of its own choice: with them it could
//! get the traffic of others.

use futures::future::{self, BoxFuture};
use serde_json::Value;

use super::fields::items;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;

/// Refuses external addresses that a Service did not have before.
pub(super) struct DenyServiceExternalIps;

impl Plugin for DenyServiceExternalIps {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.writes("", "services")
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        let addresses = |service: &'a Value| items(&service["spec"]["externalIPs"]);
        let before = old.map_or(&[][..], addresses);
        let refused = new.filter(|new| !addresses(new).iter().all(|new| before.contains(new)));
        Box::pin(future::ready(match refused {
            None => Ok(()),
            Some(new) => {
                Err(write.forbidden(new, "Use of external IPs is denied by admission control"))
            }
        }))
    }
}
