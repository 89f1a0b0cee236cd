//! Other resources for containers that run: what their Pod's cgroup allows grows before theirs, and
//! shrinks after.

use k8s_openapi::api::core::v1::{Container, Pod};

use super::cgroups::Allowed;
use super::observe::{Parts, runs};
use super::resources::{self, PodLimits};
use super::{Shared, config, uid_of};
use crate::cri::CriError;
use crate::runtime::{Change, Resizable, Resized};

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step<'a> {
    Pod(Allowed),
    Container(&'a Change),
}

/// Changes what containers of a Pod have, and what the Pod has as a whole.
pub(super) async fn resize(
    shared: &Shared,
    pod: &Pod,
    changes: &[Change],
) -> Result<Resized, CriError> {
    let parts = Parts::of(shared, uid_of(pod)).await?;
    let cgroup = shared.cgroups.parent(pod);
    let id = |name: &str| {
        let found = parts.named(name).find(|one| runs(one))?;
        Some(found.id.clone())
    };
    let (is, wanted) = (shared.cgroups.allowed(&cgroup), resources::of_pod(pod));
    let mut resized = Resized::default();
    let used = |name: &str| shared.cgroups.memory(&format!("{cgroup}/{}", id(name)?));
    let usage = Usage { pod: shared.cgroups.memory(&cgroup), of: &used };
    if let Err(error) = check_memory(&is, &wanted, changes, &usage) {
        resized.error = Some(error);
        return Ok(resized);
    }
    let steps = steps(&is, &wanted, changes);
    if let Err(error) = announce(shared, &parts, &wanted, &steps).await {
        resized.error = Some(error);
        return Ok(resized);
    }
    for step in steps {
        let failed = match step {
            Step::Pod(allowed) => shared.cgroups.allow(&cgroup, allowed).err().map(|error| {
                tracing::warn!(%error, ?allowed, cgroup, "the cgroup of a Pod was not changed");
                error.to_string()
            }),
            Step::Container(change) => match update(shared, pod, change, id(&change.name)).await {
                Err(error @ CriError::Absent { .. }) => return Err(error),
                Err(error) => Some(error.to_string()),
                Ok(()) => {
                    resized.done += 1;
                    None
                }
            },
        };
        if failed.is_some() {
            resized.error = failed;
            break;
        }
    }
    Ok(resized)
}

/// Lets the runtime know what the Pod as a whole is about to have.
async fn announce(
    shared: &Shared,
    parts: &Parts,
    wanted: &PodLimits,
    steps: &[Step<'_>],
) -> Result<(), String> {
    let whole = steps.iter().find_map(|step| match step {
        Step::Pod(Allowed::Memory(_)) => Some("memory"),
        Step::Pod(_) => Some("cpu"),
        Step::Container(_) => None,
    });
    let (Some(resource), Some(sandbox)) = (whole, parts.current()) else { return Ok(()) };
    let id = &sandbox.id;
    shared.cri.update_sandbox(id, resources::of_sandbox(wanted)).await.map_err(|error| {
        format!(
            "failed to notify runtime for UpdatePodSandboxResources (resource={resource}); resize \
             rejected: updatePodSandboxResources failed for sanboxID {id:?}: {error}"
        )
    })
}

/// Changes what a container has; one that is gone meanwhile is started with it.
async fn update(
    shared: &Shared,
    pod: &Pod,
    change: &Change,
    id: Option<String>,
) -> Result<(), CriError> {
    let (Some(id), Some((spec, _))) = (id, config::spec_of(pod, &change.name)) else {
        return Ok(());
    };
    let container = Container { resources: Some(change.resources.clone()), ..spec };
    let resources = resources::of_container(pod, &container, shared.ground.host);
    shared.cri.update_container(&id, resources).await
}

/// What is done in which order: memory before cpu; of each, limits of the Pod that grow before its
/// requests, then the containers, and what shrinks the other way round.
fn steps<'a>(is: &PodLimits, wanted: &PodLimits, changes: &'a [Change]) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    let mut around = |resource: Resizable, settings: &[(Option<i64>, i64, Allowed)]| {
        let grows =
            |(is, wanted, _): &&(Option<i64>, i64, Allowed)| is.is_some_and(|is| *wanted > is);
        let shrinks =
            |(is, wanted, _): &&(Option<i64>, i64, Allowed)| is.is_none_or(|is| *wanted < is);
        steps.extend(settings.iter().filter(grows).map(|(.., allowed)| Step::Pod(*allowed)));
        let own = changes.iter().filter(|change| change.resource == resource);
        steps.extend(own.map(Step::Container));
        let rest = settings.iter().rev().filter(shrinks);
        steps.extend(rest.map(|(.., allowed)| Step::Pod(*allowed)));
    };
    // A limit that is not wanted stays: none can be taken away.
    let memory = wanted.memory.map(|wanted| (is.memory, wanted, Allowed::Memory(wanted)));
    around(Resizable::Memory, memory.as_slice());
    let quota = wanted.cpu_quota.map(|wanted| (is.cpu_quota, wanted, Allowed::Quota(wanted)));
    let shares = (Some(is.cpu_shares), wanted.cpu_shares, Allowed::Shares(wanted.cpu_shares));
    let cpu: Vec<_> = quota.into_iter().chain([shares]).collect();
    around(Resizable::Cpu, &cpu);
    steps
}

/// How much memory is in use, as far as it is known.
struct Usage<'a> {
    pod: Option<i64>,
    /// By a container.
    of: &'a (dyn Fn(&str) -> Option<i64> + Sync),
}

/// Why memory cannot be taken away: somebody uses it. What is done by halves would be worse.
fn check_memory(
    is: &PodLimits,
    wanted: &PodLimits,
    changes: &[Change],
    usage: &Usage<'_>,
) -> Result<(), String> {
    let mut errors = Vec::new();
    let lower = |limit: &i64| is.memory.is_none_or(|is| *limit < is);
    if let Some(limit) = wanted.memory.filter(lower) {
        match usage.pod {
            None => errors.push("missing pod memory usage".to_owned()),
            Some(used) if used >= limit => errors.push(format!(
                "attempting to set pod memory limit ({limit}) below current usage ({used})"
            )),
            Some(_) => {}
        }
    }
    for change in changes.iter().filter(|change| change.resource == Resizable::Memory) {
        let (name, (before, limit)) = (&change.name, change.limit);
        if limit == 0 || before != 0 && limit >= before {
            continue;
        }
        match (usage.of)(name) {
            None => errors.push(format!("missing container {name:?} memory usage")),
            Some(used) if used >= limit => errors.push(format!(
                "attempting to set container {name:?} memory limit ({limit}) below current usage \
                 ({used})"
            )),
            Some(_) => {}
        }
    }
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(format!("cannot decrease memory limits: {one}")),
        all => Err(format!("cannot decrease memory limits: [{}]", all.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ResourceRequirements;

    use super::*;

    fn change(name: &str, resource: Resizable, limit: (i64, i64)) -> Change {
        let resources = ResourceRequirements::default();
        Change { name: name.into(), resource, resources, limit }
    }

    fn limits(cpu_shares: i64, cpu_quota: Option<i64>, memory: Option<i64>) -> PodLimits {
        PodLimits { cpu_shares, cpu_quota, memory }
    }

    /// Steps as words.
    fn words(is: &PodLimits, wanted: &PodLimits, changes: &[Change]) -> String {
        let words = steps(is, wanted, changes).into_iter().map(|step| match step {
            Step::Pod(Allowed::Memory(to)) => format!("memory={to}"),
            Step::Pod(Allowed::Quota(to)) => format!("quota={to}"),
            Step::Pod(Allowed::Shares(to)) => format!("shares={to}"),
            Step::Container(change) => format!("{}:{}", change.name, change.resource.name()),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_pod_grows_before_its_containers_and_shrinks_after_them() {
        let changes = [
            change("a", Resizable::Memory, (64, 128)),
            change("a", Resizable::Cpu, (100, 200)),
            change("b", Resizable::Cpu, (300, 400)),
        ];
        let small = limits(102, Some(10_000), Some(64));
        let large = limits(204, Some(20_000), Some(128));
        assert_eq!(
            words(&small, &large, &changes),
            "memory=128 a:memory quota=20000 shares=204 a:cpu b:cpu"
        );
        assert_eq!(
            words(&large, &small, &changes),
            "a:memory memory=64 a:cpu b:cpu shares=102 quota=10000"
        );
        let mixed = limits(102, Some(20_000), Some(64));
        assert_eq!(words(&small, &mixed, &changes[2..]), "quota=20000 b:cpu");
        assert_eq!(words(&small, &small, &[]), "");
        let open = limits(102, None, None);
        assert_eq!(words(&small, &open, &[]), "", "no limit is taken away");
        assert_eq!(words(&open, &small, &changes[..1]), "a:memory memory=64 quota=10000");
    }

    #[test]
    fn memory_in_use_is_not_taken_away() {
        let used = |name: &str| (name != "gone").then_some(80);
        let usage = Usage { pod: Some(100), of: &used };
        let of = |memory: i64| limits(2, None, Some(memory));
        let check = |is: i64, wanted: i64, changes: &[Change]| {
            check_memory(&of(is), &of(wanted), changes, &usage)
        };
        let container = |name: &str, limit| [change(name, Resizable::Memory, limit)];
        assert_eq!(check(200, 150, &container("a", (200, 150))), Ok(()));
        assert_eq!(check(200, 300, &container("a", (10, 20))), Ok(()), "nothing is taken away");
        assert_eq!(check(200, 300, &[change("a", Resizable::Cpu, (20, 10))]), Ok(()));
        let refused = |is, wanted, name, limit| {
            let why = check(is, wanted, &container(name, limit)).unwrap_err();
            why.strip_prefix("cannot decrease memory limits: ").unwrap().to_owned()
        };
        let of_container =
            "attempting to set container \"a\" memory limit (80) below current usage (80)";
        assert_eq!(refused(200, 200, "a", (160, 80)), of_container);
        assert_eq!(refused(200, 200, "a", (0, 80)), of_container, "a limit where none was");
        assert_eq!(
            refused(200, 90, "a", (160, 80)),
            format!(
                "[attempting to set pod memory limit (90) below current usage (100), {of_container}]"
            )
        );
        assert_eq!(refused(200, 200, "gone", (160, 80)), "missing container \"gone\" memory usage");
    }
}
