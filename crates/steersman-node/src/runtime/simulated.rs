//! A runtime without containers: everything starts at once, runs for ever and stops at once.
//!
//! It remembers nothing. What it tells follows from the Pod alone, so a restart changes nothing.

use k8s_openapi::api::core::v1::{Container, Pod};
use steersman::Result;

use super::{ContainerRuntime, StartedContainer};

pub(crate) struct Simulated;

impl ContainerRuntime for Simulated {
    async fn run(&self, pod: &Pod) -> Result<Vec<StartedContainer>> {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let Some(spec) = &pod.spec else {
            return Ok(Vec::new());
        };
        let all = spec.init_containers.iter().flatten().chain(&spec.containers);
        Ok(all.map(|container| started(uid, container)).collect())
    }

    async fn stop(&self, _: &Pod) -> Result<()> {
        Ok(())
    }
}

fn started(uid: &str, container: &Container) -> StartedContainer {
    StartedContainer {
        name: container.name.clone(),
        id: format!("simulated://{uid}/{}", container.name),
        image_id: format!("simulated://{}", container.image.as_deref().unwrap_or_default()),
    }
}
