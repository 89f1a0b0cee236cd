//! The names of images: `registry:5000/team/app:tag@digest`, all but the middle optional.
//! <https://github.com/distribution/reference/blob/v0.6.0/reference.go>

/// The longest path of an image, in bytes.
const PATH_MAX: usize = 255;
const TAG_MAX: usize = 128;

/// Whether an image means whatever is newest: tagged so, or neither tagged nor pinned. What is no
/// name of an image means nothing.
pub(super) fn is_latest(image: &str) -> bool {
    let (name, digest) = image.split_once('@').map_or((image, None), |(n, d)| (n, Some(d)));
    // A registry may have a port, so only what follows the last slash can have a tag.
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    let (path, tag) = match name[last..].find(':') {
        Some(colon) => (&name[..last + colon], Some(&name[last + colon + 1..])),
        None => (name, None),
    };
    let sound = is_path(path) && tag.is_none_or(is_tag) && digest.is_none_or(is_digest);
    let latest = tag.map_or(digest.is_none(), |tag| tag == "latest");
    sound && latest && !is_identifier(image)
}

/// Whether a text is the path of an image, in a registry or in that of Docker.
fn is_path(text: &str) -> bool {
    let path = match text.split_once('/') {
        Some((registry, path)) if names_registry(registry) => {
            if !is_registry(registry) {
                return false;
            }
            path
        }
        _ => text,
    };
    path.len() <= PATH_MAX && path.split('/').all(is_component)
}

fn names_registry(first: &str) -> bool {
    let marked = |c: char| c == '.' || c == ':' || c.is_uppercase();
    first == "localhost" || first.contains(marked)
}

/// A host and perhaps a port.
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let is_label = |label: &str| {
        let alphanumeric = |c: char| c.is_ascii_alphanumeric();
        label.starts_with(alphanumeric)
            && label.ends_with(alphanumeric)
            && label.chars().all(|c| alphanumeric(c) || c == '-')
    };
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_host = match address {
        Some(six) => !six.is_empty() && six.chars().all(|c| c.is_ascii_hexdigit() || c == ':'),
        None => host.split('.').all(is_label),
    };
    is_host && port.is_none_or(is_port)
}

/// Lowercase letters and digits, with single dots, one or two underscores, or dashes between.
fn is_component(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let separates = |part: &str| [".", "_", "__"].contains(&part) || part.chars().all(|c| c == '-');
    text.starts_with(plain) && text.ends_with(plain) && text.split(plain).all(separates)
}

fn is_tag(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= TAG_MAX
        && text.starts_with(word)
        && text.chars().all(|c| word(c) || c == '.' || c == '-')
}

fn is_digest(text: &str) -> bool {
    let digits = |wanted: usize, hash: &str| hash.len() == wanted && is_hexadecimal(hash);
    match text.split_once(':') {
        Some(("sha256", hash)) => digits(64, hash),
        Some(("sha384", hash)) => digits(96, hash),
        Some(("sha512", hash)) => digits(128, hash),
        _ => false,
    }
}

/// What looks like the digest of an image is not taken for its name.
fn is_identifier(text: &str) -> bool {
    text.len() == 64 && is_hexadecimal(text)
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::is_latest;

    #[test]
    fn an_image_without_tag_or_digest_is_the_latest() {
        let digest = format!("sha256:{}", "a0".repeat(32));
        for (image, latest) in [
            ("nginx", true),
            ("nginx:latest", true),
            ("registry:5000/nginx", true),
            ("localhost/a__b/c--d.e_f", true),
            ("[fd00::1]:5000/nginx", true),
            ("Registry/nginx", true),
            ("registry:5000/nginx:1.2", false),
            (&*format!("nginx@{digest}"), false),
            (&*format!("nginx:latest@{digest}"), true),
            (&*format!("registry:5000/nginx:1@{digest}"), false),
        ] {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }

    #[test]
    fn what_is_no_name_of_an_image_is_not_the_latest() {
        for image in [
            "",
            "nginx:",
            "Nginx",
            "team/Nginx",
            "registry.example.com/",
            "registry:port/nginx",
            "-registry.example.com/nginx",
            "a//b",
            "a..b",
            "a___b",
            "a-",
            "nginx:latest@sha256:abc",
            "nginx:-a",
            "$(IMAGE)",
            " nginx",
            &*"a0".repeat(32),
            &*"a".repeat(300),
        ] {
            assert!(!is_latest(image), "{image}");
        }
    }
}
