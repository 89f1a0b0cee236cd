//! Who a container is: what its Pod and it itself say of users and groups.

use k8s_openapi::api::core::v1::{
    Container, EphemeralContainer, LinuxContainerUser, Pod, PodSecurityContext, SecurityContext,
};

/// The highest number that a user can have.
const USER_MAX: i64 = 0x7fff_ffff;

/// As whom an image runs by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ImageUser {
    pub(crate) uid: Option<i64>,
    pub(crate) name: String,
}

/// What is said of who a container is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked<'a> {
    /// By itself.
    own: Option<&'a SecurityContext>,
    /// By its Pod.
    whole: Option<&'a PodSecurityContext>,
}

impl<'a> Asked<'a> {
    /// Of a container of a Pod.
    pub(crate) fn of(pod: &'a Pod, container: &'a Container) -> Self {
        Self { own: container.security_context.as_ref(), whole: whole(pod) }
    }

    /// Of one that was added later.
    pub(crate) fn of_added(pod: &'a Pod, added: &'a EphemeralContainer) -> Self {
        Self { own: added.security_context.as_ref(), whole: whole(pod) }
    }

    /// The user, if any is named.
    pub(crate) fn user(self) -> Option<i64> {
        let own = self.own.and_then(|own| own.run_as_user);
        own.or(self.whole.and_then(|all| all.run_as_user))
    }

    /// Its group, if any is named.
    pub(crate) fn group(self) -> Option<i64> {
        let own = self.own.and_then(|own| own.run_as_group);
        own.or(self.whole.and_then(|all| all.run_as_group))
    }

    /// Who it is if its image runs as root and puts root into no groups.
    pub(crate) fn identity(self) -> LinuxContainerUser {
        let (uid, gid) = (self.user().unwrap_or(0), self.group().unwrap_or(0));
        let mut groups = vec![gid];
        for group in groups_of(self.whole) {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        LinuxContainerUser { uid, gid, supplemental_groups: Some(groups) }
    }

    /// Refuses what says that it is not root, and is.
    pub(crate) fn not_root(self, image: &ImageUser) -> Result<(), String> {
        let own = self.own.and_then(|own| own.run_as_non_root);
        if own.or(self.whole.and_then(|all| all.run_as_non_root)) != Some(true) {
            return Ok(());
        }
        Err(match (self.user(), image.uid) {
            (Some(0), _) => "container's runAsUser breaks non-root policy".to_owned(),
            (Some(_), _) => return Ok(()),
            (None, None) if !image.name.is_empty() => format!(
                "container has runAsNonRoot and image has non-numeric user ({}), cannot verify \
                 user is non-root",
                image.name
            ),
            (None, Some(0) | None) => {
                "container has runAsNonRoot and image will run as root".to_owned()
            }
            (None, Some(uid)) if !(0..=USER_MAX).contains(&uid) => format!(
                "container has runAsNonRoot and image has an invalid user id ({uid}). (Must be \
                 1-({USER_MAX})): must be between 0 and {USER_MAX}, inclusive"
            ),
            (None, Some(_)) => return Ok(()),
        })
    }
}

fn whole(pod: &Pod) -> Option<&PodSecurityContext> {
    pod.spec.as_ref()?.security_context.as_ref()
}

/// The groups that all containers of a Pod are in.
pub(crate) fn groups_of(whole: Option<&PodSecurityContext>) -> Vec<i64> {
    let Some(whole) = whole else { return Vec::new() };
    let groups = whole.supplemental_groups.iter().flatten().copied();
    whole.fs_group.into_iter().chain(groups).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn identity(whole: &Value, own: &Value) -> Value {
        let container = json!({"name": "c", "securityContext": own});
        let spec = json!({"securityContext": whole, "containers": [container]});
        let pod: Pod = serde_json::from_value(json!({"spec": spec})).unwrap();
        let container = &pod.spec.as_ref().unwrap().containers[0];
        serde_json::to_value(Asked::of(&pod, container).identity()).unwrap()
    }

    #[test]
    fn a_container_is_whom_it_names_before_whom_its_pod_names() {
        let root = json!({"uid": 0, "gid": 0, "supplementalGroups": [0]});
        assert_eq!(identity(&json!({}), &json!({})), root);
        let pod = json!({"runAsUser": 1000, "runAsGroup": 3000, "supplementalGroups": [4000]});
        let expected = json!({"uid": 1000, "gid": 3000, "supplementalGroups": [3000, 4000]});
        assert_eq!(identity(&pod, &json!({})), expected);
        let pod = json!({"runAsUser": 1000, "fsGroup": 7, "supplementalGroups": [8, 7]});
        let expected = json!({"uid": 2000, "gid": 8, "supplementalGroups": [8, 7]});
        assert_eq!(identity(&pod, &json!({"runAsUser": 2000, "runAsGroup": 8})), expected);
    }
}
