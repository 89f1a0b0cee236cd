//! How a Pod is called, and whom it asks for names: hostname, `/etc/hosts` and DNS.

use k8s_openapi::api::core::v1::{HostAlias, Pod};

use super::is_on_host;
use crate::cri::wire::sandbox::DNSConfig;

const HOSTNAME_MAX: usize = 63;
/// How long a name can be that the kernel gives a machine.
const FULL_MAX: usize = 64;
/// How many lines of each kind a resolver reads.
const SERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
/// How long those of the second kind can be, each and together.
const SEARCH_MAX: usize = 253;
const SEARCH_LINE_MAX: usize = 2048;
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

/// Whom a Pod asks for names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dns {
    pub(super) config: DNSConfig,
    /// What is not as it was asked for.
    pub(super) problems: Vec<DnsProblem>,
}

/// Why a Pod asks others for names than it is said to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DnsProblem {
    /// It could ask nobody in the cluster.
    #[error(
        "kubelet does not have ClusterDNS IP configured and cannot create Pod using \"ClusterFirst\" \
         policy. Falling back to \"Default\" policy."
    )]
    NoClusterDns,
    /// Only these are left of too many servers.
    #[error(
        "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver \
         line is: {0}"
    )]
    Servers(String),
    /// The same for what names are completed with.
    #[error(
        "Search Line limits were exceeded, some search paths have been omitted, the applied search \
         line is: {0}"
    )]
    Searches(String),
}

impl DnsProblem {
    /// The same in one word.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::NoClusterDns => "MissingClusterDNS",
            Self::Servers(_) | Self::Searches(_) => "DNSConfigForming",
        }
    }
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
    let on_host = is_on_host(pod);
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
pub(super) fn dns(pod: &Pod, cluster: &ClusterDns, of_machine: &str) -> Dns {
    let spec = pod.spec.as_ref();
    let policy = spec.and_then(|spec| spec.dns_policy.as_deref()).unwrap_or("ClusterFirst");
    let asks_cluster = match policy {
        "ClusterFirst" => !is_on_host(pod),
        other => other == "ClusterFirstWithHostNet",
    };
    let host = resolver(of_machine);
    let mut problems = Vec::new();
    let mut config = match policy {
        "None" => DNSConfig::default(),
        _ if asks_cluster && cluster.servers.is_empty() => {
            problems.push(DnsProblem::NoClusterDns);
            host
        }
        _ if asks_cluster => of_cluster(pod, cluster, host),
        _ => host,
    };
    if let Some(asked) = spec.and_then(|spec| spec.dns_config.as_ref()) {
        config.servers.extend(asked.nameservers.iter().flatten().cloned());
        config.searches.extend(asked.searches.iter().flatten().cloned());
        let before = config
            .options
            .iter()
            .map(|option| option.split_once(':').unwrap_or((option.as_str(), "")));
        let own = asked.options.iter().flatten().filter_map(|option| {
            Some((option.name.as_deref()?, option.value.as_deref().unwrap_or_default()))
        });
        let mut options = Vec::new();
        for (name, value) in before.chain(own) {
            let colon = if value.is_empty() { "" } else { ":" };
            set(&mut options, format!("{name}{colon}{value}"));
        }
        let (servers, searches) = (distinct(config.servers), distinct(config.searches));
        config = DNSConfig { servers, searches, options };
    }
    problems.extend(fit(&mut config));
    Dns { config, problems }
}

fn of_cluster(pod: &Pod, cluster: &ClusterDns, host: DNSConfig) -> DNSConfig {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let domain = &cluster.domain;
    let searches = if domain.is_empty() {
        host.searches
    } else {
        let own = [format!("{namespace}.svc.{domain}"), format!("svc.{domain}"), domain.clone()];
        distinct(own.into_iter().chain(host.searches).collect())
    };
    DNSConfig { servers: cluster.servers.clone(), searches, options: vec!["ndots:5".into()] }
}

/// Leaves out what a resolver does not read, and says of what there was too much.
fn fit(config: &mut DNSConfig) -> Vec<DnsProblem> {
    let DNSConfig { servers, searches, .. } = config;
    let mut problems = Vec::new();
    if servers.len() > SERVERS_MAX {
        servers.truncate(SERVERS_MAX);
        problems.push(DnsProblem::Servers(servers.join(" ")));
    }
    let asked = searches.len();
    searches.truncate(SEARCHES_MAX);
    searches.retain(|search| search.len() <= SEARCH_MAX);
    while searches.join(" ").len() > SEARCH_LINE_MAX {
        searches.pop();
    }
    if searches.len() < asked {
        problems.push(DnsProblem::Searches(searches.join(" ")));
    }
    problems
}

/// The same, each once.
fn distinct(list: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for one in list {
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}

/// Sets an option, instead of what was said of it before.
fn set(options: &mut Vec<String>, option: String) {
    match options.iter_mut().find(|old| option_name(old) == option_name(&option)) {
        Some(old) => *old = option,
        None => options.push(option),
    }
}

fn option_name(option: &str) -> &str {
    option.split_once(':').map_or(option, |(name, _)| name)
}

/// What a `resolv.conf` says.
fn resolver(text: &str) -> DNSConfig {
    let mut config = DNSConfig::default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("nameserver") => config.servers.extend(words.next().map(str::to_owned)),
            // The same domain with and without a dot at its end counts once.
            Some("search") => {
                let domains = words.filter(|domain| *domain != ".");
                let bare = |domain: &str| domain.strip_suffix('.').unwrap_or(domain).to_owned();
                config.searches = domains.map(bare).collect();
            }
            Some("options") => words.for_each(|option| set(&mut config.options, option.into())),
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
        let of = |spec| dns(&pod(spec), &cluster, host).config;
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
    }

    #[test]
    fn what_a_machine_and_a_pod_say_twice_counts_once() {
        let host = "search . corp.example. corp.example\noptions timeout:1 rotate\n\
                    options timeout:2\n";
        let plain = dns(&pod(json!({"dnsPolicy": "Default"})), &ClusterDns::default(), host).config;
        assert_eq!(plain.searches, ["corp.example", "corp.example"]);
        assert_eq!(plain.options, ["timeout:2", "rotate"]);
        let options = json!([{"name": "edns0", "value": ""}, {"name": "timeout", "value": "3"}]);
        let asked = json!({"searches": ["own.example"], "options": options});
        let spec = json!({"dnsPolicy": "Default", "dnsConfig": asked});
        let merged = dns(&pod(spec), &ClusterDns::default(), host).config;
        assert_eq!(merged.searches, ["corp.example", "own.example"]);
        assert_eq!(merged.options, ["timeout:3", "rotate", "edns0"]);
    }

    #[test]
    fn what_a_resolver_does_not_read_is_left_out_and_it_is_said() {
        let none = |config: Value| {
            let spec = json!({"dnsPolicy": "None", "dnsConfig": config});
            dns(&pod(spec), &ClusterDns::default(), "")
        };
        let got = none(json!({"nameservers": ["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"]}));
        assert_eq!(got.config.servers, ["1.1.1.1", "2.2.2.2", "3.3.3.3"]);
        assert_eq!(
            got.problems[0].to_string(),
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied \
             nameserver line is: 1.1.1.1 2.2.2.2 3.3.3.3"
        );
        let numbered = |count: usize, length: usize| -> Vec<String> {
            (0..count).map(|n| format!("{n:02}{}", "a".repeat(length - 2))).collect()
        };
        for (searches, left) in [
            (numbered(32, 5), 32),
            (numbered(33, 5), 32),
            (numbered(1, 253), 1),
            (numbered(1, 254), 0),
            (numbered(8, 253), 8),
            (numbered(9, 253), 8),
        ] {
            let got = none(json!({"searches": searches}));
            assert_eq!(got.config.searches, &searches[..left]);
            let line = searches[..left].join(" ");
            let problem = (left < searches.len()).then_some(DnsProblem::Searches(line));
            assert_eq!(got.problems, problem.into_iter().collect::<Vec<_>>());
        }
        let line = DnsProblem::Searches("a b".into());
        assert_eq!(line.reason(), "DNSConfigForming");
        assert_eq!(
            line.to_string(),
            "Search Line limits were exceeded, some search paths have been omitted, the applied \
             search line is: a b"
        );
    }

    #[test]
    fn without_anybody_in_the_cluster_the_machine_is_asked_and_it_is_said() {
        for (spec, said) in [
            (json!({}), true),
            (json!({"hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet"}), true),
            (json!({"hostNetwork": true}), false),
            (json!({"dnsPolicy": "Default"}), false),
        ] {
            let got = dns(&pod(spec), &ClusterDns::default(), "nameserver 9.9.9.9\n");
            assert_eq!(got.config.servers, ["9.9.9.9"]);
            let reasons: Vec<_> = got.problems.iter().map(DnsProblem::reason).collect();
            assert_eq!(reasons, if said { vec!["MissingClusterDNS"] } else { vec![] });
        }
    }
}
