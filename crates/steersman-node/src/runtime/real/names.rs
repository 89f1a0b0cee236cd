//! How a Pod is called, and whom it asks for names: hostname, `/etc/hosts` and DNS.

use k8s_openapi::api::core::v1::{HostAlias, Pod};

use crate::cri::wire::sandbox::DNSConfig;

const HOSTNAME_MAX: usize = 63;
/// How long a name can be that the kernel gives a machine.
const FULL_MAX: usize = 64;
/// How many lines of each kind a resolver reads.
const SERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
/// What comes before the addresses in a file of ours.
const HEADER: &str = "# Kubernetes-managed hosts file.\n";
const HEADER_ON_HOST: &str = "# Kubernetes-managed hosts file (host network).\n";
const LOCAL: &str = "127.0.0.1\tlocalhost\n\
    ::1\tlocalhost ip6-localhost ip6-loopback\n\
    fe00::0\tip6-localnet\n\
    fe00::0\tip6-mcastprefix\n\
    fe00::1\tip6-allnodes\n\
    fe00::2\tip6-allrouters\n";

/// Who answers names in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClusterDns {
    pub(crate) servers: Vec<String>,
    /// What names of the cluster end with.
    pub(crate) domain: String,
}

/// The hostname of a Pod with a network of its own, or why it cannot be called so.
pub(super) fn hostname(pod: &Pod, cluster: &str) -> Result<String, String> {
    let short = short(pod);
    let full = pod.spec.as_ref().and_then(|spec| spec.set_hostname_as_fqdn) == Some(true);
    let Some(domain) = domain(pod, cluster).filter(|_| full) else { return Ok(short) };
    let name = format!("{short}.{domain}");
    match name.len() {
        ..=FULL_MAX => Ok(name),
        length => Err(format!(
            "failed to construct FQDN from pod hostname and cluster domain, FQDN {name} is too long \
             ({FULL_MAX} characters is the max, {length} characters requested)"
        )),
    }
}

/// The same without what follows it.
fn short(pod: &Pod) -> String {
    let spec = pod.spec.as_ref();
    if let Some(forced) = spec.and_then(|spec| spec.hostname_override.as_ref()) {
        return forced.clone();
    }
    let asked = spec.and_then(|spec| spec.hostname.clone()).filter(|name| !name.is_empty());
    let name = asked.unwrap_or_else(|| pod.metadata.name.clone().unwrap_or_default());
    let cut: String = name.chars().take(HOSTNAME_MAX).collect();
    cut.trim_end_matches(['-', '.']).to_owned()
}

/// What follows the hostname of a Pod with a subdomain.
fn domain(pod: &Pod, cluster: &str) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let subdomain = spec.subdomain.as_deref().filter(|name| !name.is_empty())?;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let cluster = if cluster.is_empty() { "cluster.local" } else { cluster };
    spec.hostname_override.is_none().then(|| format!("{subdomain}.{namespace}.svc.{cluster}"))
}

/// The `/etc/hosts` of a Pod with these addresses, on a machine with that one.
pub(super) fn hosts(pod: &Pod, addresses: &[String], of_machine: &str, cluster: &str) -> String {
    let spec = pod.spec.as_ref();
    let on_host = spec.and_then(|spec| spec.host_network) == Some(true);
    let mut text = match on_host {
        true => format!("{HEADER_ON_HOST}{of_machine}"),
        false => format!("{HEADER}{LOCAL}"),
    };
    if !on_host {
        let name = short(pod);
        for address in addresses {
            text += &match domain(pod, cluster) {
                Some(domain) => format!("{address}\t{name}.{domain}\t{name}\n"),
                None => format!("{address}\t{name}\n"),
            };
        }
    }
    let aliases = spec.and_then(|spec| spec.host_aliases.as_ref());
    if let Some(aliases) = aliases.filter(|aliases| !aliases.is_empty()) {
        text += "\n# Entries added by HostAliases.\n";
        for HostAlias { hostnames, ip } in aliases {
            text += &format!(
                "{ip}\t{}\n",
                hostnames.iter().flatten().cloned().collect::<Vec<_>>().join("\t")
            );
        }
    }
    text
}

/// Whom a Pod asks for names: as its policy says, of the cluster or of its machine.
pub(super) fn dns(pod: &Pod, cluster: &ClusterDns, of_machine: &str) -> DNSConfig {
    let spec = pod.spec.as_ref();
    let on_host = spec.and_then(|spec| spec.host_network) == Some(true);
    let policy = spec.and_then(|spec| spec.dns_policy.as_deref()).unwrap_or("ClusterFirst");
    let host = resolver(of_machine);
    let mut config = match policy {
        "None" => DNSConfig::default(),
        "ClusterFirst" if !on_host => of_cluster(pod, cluster, host),
        "ClusterFirstWithHostNet" => of_cluster(pod, cluster, host),
        _ => host,
    };
    if let Some(asked) = spec.and_then(|spec| spec.dns_config.as_ref()) {
        extend(&mut config.servers, asked.nameservers.iter().flatten().cloned());
        extend(&mut config.searches, asked.searches.iter().flatten().cloned());
        for option in asked.options.iter().flatten() {
            let Some(name) = &option.name else { continue };
            config.options.retain(|old| old.split(':').next() != Some(name));
            config.options.push(match &option.value {
                Some(value) => format!("{name}:{value}"),
                None => name.clone(),
            });
        }
    }
    config.servers.truncate(SERVERS_MAX);
    config.searches.truncate(SEARCHES_MAX);
    config
}

fn of_cluster(pod: &Pod, cluster: &ClusterDns, host: DNSConfig) -> DNSConfig {
    if cluster.servers.is_empty() {
        return host; // as a kubelet does without --cluster-dns
    }
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let domain = &cluster.domain;
    let own = [format!("{namespace}.svc.{domain}"), format!("svc.{domain}"), domain.clone()];
    let mut searches = own.to_vec();
    extend(&mut searches, host.searches);
    DNSConfig { servers: cluster.servers.clone(), searches, options: vec!["ndots:5".into()] }
}

fn extend(list: &mut Vec<String>, more: impl IntoIterator<Item = String>) {
    for one in more {
        if !list.contains(&one) {
            list.push(one);
        }
    }
}

/// What a `resolv.conf` says.
fn resolver(text: &str) -> DNSConfig {
    let mut config = DNSConfig::default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("nameserver") => config.servers.extend(words.next().map(str::to_owned)),
            Some("search") => config.searches = words.map(str::to_owned).collect(),
            Some("options") => config.options = words.map(str::to_owned).collect(),
            _ => {}
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: Value) -> Pod {
        let metadata = json!({"name": "web-0", "namespace": "shop"});
        let mut spec = spec;
        spec["containers"] = json!([]);
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    #[test]
    fn a_pod_is_called_as_it_says_or_as_its_object() {
        let of = |spec| hostname(&pod(spec), "foo.bar").unwrap();
        assert_eq!(of(json!({})), "web-0");
        assert_eq!(of(json!({"hostname": "db"})), "db");
        let full = json!({"hostname": "db", "subdomain": "dbs", "setHostnameAsFQDN": true});
        assert_eq!(of(full), "db.dbs.shop.svc.foo.bar");
        let mut long = pod(json!({}));
        long.metadata.name = Some(format!("{}-{}", "a".repeat(62), "b".repeat(9)));
        assert_eq!(hostname(&long, "").unwrap(), "a".repeat(62));
    }

    #[test]
    fn a_full_name_that_the_kernel_does_not_take_is_refused() {
        let of = |length| {
            let subdomain = "s".repeat(length - "db..shop.svc.foo.bar".len());
            let spec = json!({"hostname": "db", "subdomain": subdomain, "setHostnameAsFQDN": true});
            hostname(&pod(spec), "foo.bar")
        };
        assert_eq!(of(64).unwrap().len(), 64);
        let why = of(65).unwrap_err();
        let begin = "failed to construct FQDN from pod hostname and cluster domain, FQDN db.ss";
        let end =
            ".shop.svc.foo.bar is too long (64 characters is the max, 65 characters requested)";
        assert!(why.starts_with(begin) && why.ends_with(end), "{why}");
    }

    #[test]
    fn hosts_name_the_pod_and_its_aliases() {
        let aliases = json!([{"ip": "1.2.3.4", "hostnames": ["a", "b"]}]);
        let spec = json!({"hostname": "db", "subdomain": "dbs", "hostAliases": aliases});
        let text = hosts(&pod(spec), &["10.0.0.9".into()], "", "cluster.local");
        assert!(text.starts_with("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"));
        assert!(text.contains("10.0.0.9\tdb.dbs.shop.svc.cluster.local\tdb\n"), "{text}");
        assert!(text.ends_with("# Entries added by HostAliases.\n1.2.3.4\ta\tb\n"), "{text}");
        let text = hosts(&pod(json!({"hostNetwork": true})), &[], "127.0.0.1 vm\n", "");
        assert_eq!(text, "# Kubernetes-managed hosts file (host network).\n127.0.0.1 vm\n");
    }

    #[test]
    fn names_are_asked_of_whom_the_policy_says() {
        let cluster =
            ClusterDns { servers: vec!["10.96.0.10".into()], domain: "cluster.local".into() };
        let host = "nameserver 9.9.9.9\nsearch corp.example\n";
        let of = |spec| dns(&pod(spec), &cluster, host);
        let first = of(json!({}));
        assert_eq!(first.servers, ["10.96.0.10"]);
        assert_eq!(
            first.searches,
            ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example"]
        );
        assert_eq!(first.options, ["ndots:5"]);
        assert_eq!(of(json!({"dnsPolicy": "Default"})).servers, ["9.9.9.9"]);
        assert_eq!(of(json!({"hostNetwork": true})).servers, ["9.9.9.9"]);
        let own = json!({"nameservers": ["8.8.8.8"], "options": [{"name": "ndots", "value": "2"}]});
        let none = of(json!({"dnsPolicy": "None", "dnsConfig": own.clone()}));
        assert_eq!((none.servers, none.options), (vec!["8.8.8.8".into()], vec!["ndots:2".into()]));
        assert_eq!(of(json!({"dnsConfig": own})).options, ["ndots:2"]);
        assert_eq!(dns(&pod(json!({})), &ClusterDns::default(), host).servers, ["9.9.9.9"]);
    }
}
