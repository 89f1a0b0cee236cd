//! Names of images: `registry/path:tag` or `…@digest`.

/// The name with the tag that is meant if there is none.
pub(crate) fn with_tag(name: &str) -> Result<String, &'static str> {
    let (rest, digest) = match name.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (name, None),
    };
    let last = rest.rfind('/').map_or(0, |at| at + 1);
    let (path, tag) = match rest[last..].find(':') {
        Some(at) => (&rest[..last + at], Some(&rest[last + at + 1..])),
        None => (rest, None),
    };
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if tag.is_some_and(|tag| tag.is_empty() || tag.len() > 128 || !tag.chars().all(word))
        || digest.is_some_and(|digest| !digest.contains(':'))
    {
        return Err("invalid reference format");
    }
    let mut parts = path.split('/').peekable();
    // A registry may have a port and capital letters.
    let first = parts.peek().copied().unwrap_or_default();
    if path.contains('/') && (first.contains(['.', ':']) || first == "localhost") {
        parts.next();
    }
    for part in parts {
        if part.chars().any(|c| c.is_ascii_uppercase()) {
            return Err("invalid reference format: repository name must be lowercase");
        }
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        if !part.chars().all(word) || !edge(part.chars().next()) || !edge(part.chars().last()) {
            return Err("invalid reference format");
        }
    }
    match (tag, digest) {
        (None, None) => Ok(format!("{name}:latest")),
        _ => Ok(name.to_owned()),
    }
}

/// The repository that a name leads to: in full, without tag and digest.
pub(crate) fn repository(name: &str) -> String {
    let path = without_tag(name);
    let (registry, path) = match path.split_once('/') {
        Some(("index.docker.io", path)) => ("docker.io", path),
        Some((first, path)) if first.contains(['.', ':']) || first == "localhost" => (first, path),
        _ => ("docker.io", path),
    };
    let is_official = registry == "docker.io" && !path.contains('/');
    let library = if is_official { "library/" } else { "" };
    format!("{registry}/{library}{path}")
}

/// The name in full, with the tag or the digest.
pub(crate) fn full(name: &str) -> String {
    format!("{}{}", repository(name), &name[without_tag(name).len()..])
}

/// The name without tag and digest.
pub(crate) fn without_tag(name: &str) -> &str {
    let rest = name.split_once('@').map_or(name, |(rest, _)| rest);
    let last = rest.rfind('/').map_or(0, |at| at + 1);
    rest[last..].find(':').map_or(rest, |at| &rest[..last + at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_tag_means_the_latest() {
        for (name, full) in [
            ("nginx", "nginx:latest"),
            ("nginx:1.27", "nginx:1.27"),
            ("localhost:5000/a/b", "localhost:5000/a/b:latest"),
            ("ghcr.io/a/b@sha256:00", "ghcr.io/a/b@sha256:00"),
        ] {
            assert_eq!(with_tag(name).as_deref(), Ok(full));
        }
        let wrong = ["Nginx", "a//b", "a:", "a:b c", "", "/a", "a@b", "-a"];
        for name in wrong {
            assert!(with_tag(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_name_leads_to_a_repository() {
        for (name, expected) in [
            ("nginx", "docker.io/library/nginx"),
            ("team/web:1", "docker.io/team/web"),
            ("docker.io/nginx:1", "docker.io/library/nginx"),
            ("index.docker.io/team/web", "docker.io/team/web"),
            ("ghcr.io/a/b:1@sha256:00", "ghcr.io/a/b"),
            ("localhost:5000/a", "localhost:5000/a"),
            ("localhost/a:1", "localhost/a"),
        ] {
            assert_eq!(repository(name), expected);
        }
        assert_eq!(full("nginx:1"), "docker.io/library/nginx:1");
    }
}
