//! Names of images: `registry/path:tag` or `…@digest`.

/// The name with the tag that is meant if there is none.
pub(super) fn with_tag(name: &str) -> Result<String, &'static str> {
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

/// The registry that a name leads to.
pub(super) fn registry(name: &str) -> &str {
    match name.split_once('/') {
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => first,
        _ => "docker.io",
    }
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
    fn a_name_leads_to_a_registry() {
        for (name, registry_) in [
            ("nginx", "docker.io"),
            ("library/nginx:1", "docker.io"),
            ("ghcr.io/a/b", "ghcr.io"),
            ("localhost:5000/a", "localhost:5000"),
        ] {
            assert_eq!(registry(name), registry_);
        }
    }
}
