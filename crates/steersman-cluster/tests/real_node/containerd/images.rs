//! The images of the tests: busybox, and one whose only process waits, for sandboxes.

use std::fs;
use std::path::PathBuf;

use super::layout::{self, Image};
use super::tar::{Entry, Tar};

/// What of busybox containers call by name.
const PROGRAMS: [&str; 19] = [
    "sh", "httpd", "sleep", "cat", "echo", "true", "false", "touch", "ls", "tail", "head", "dd",
    "kill", "id", "hostname", "date", "mkdir", "rm", "wc",
];

/// Both images in one archive.
pub(crate) fn archive() -> Vec<u8> {
    let layer = layer();
    let pause = vec!["/bin/tail", "-f", "/dev/null"];
    layout::archive(vec![
        Image { name: "localhost/busybox:1", command: vec!["sh"], layers: vec![layer.clone()] },
        Image { name: "localhost/pause:1", command: pause, layers: vec![layer] },
    ])
}

/// The archive of an image with a file of so many bytes, which is like no other.
pub(crate) fn large(name: &'static str, bytes: usize) -> Vec<u8> {
    let mut tar = Tar::default();
    let mut content = name.as_bytes().repeat(bytes / name.len() + 1);
    content.truncate(bytes);
    tar.add("large", &Entry::File { mode: 0o644, content: &content });
    for (name, entry) in [("bin/", Entry::Directory), ("proc/", Entry::Directory)] {
        tar.add(name, &entry);
    }
    tar.add("bin/busybox", &Entry::File { mode: 0o755, content: &busybox() });
    tar.add("bin/sh", &Entry::Link("busybox"));
    tar.add("bin/sleep", &Entry::Link("busybox"));
    layout::archive(vec![Image { name, command: vec!["sh"], layers: vec![tar.finish()] }])
}

/// The archive of an image of so many layers, with a file in each.
pub(crate) fn layered(name: &'static str, count: usize) -> Vec<u8> {
    let layer = |number: usize| {
        let mut tar = Tar::default();
        let content = number.to_string();
        let file = Entry::File { mode: 0o644, content: content.as_bytes() };
        tar.add(&format!("layer-{number}"), &file);
        tar.finish()
    };
    let layers = (0..count).map(layer).collect();
    layout::archive(vec![Image { name, command: vec!["none"], layers }])
}

/// The static busybox of this machine, under all its names.
fn layer() -> Vec<u8> {
    let busybox = busybox();
    let mut tar = Tar::default();
    for directory in ["bin/", "dev/", "etc/", "proc/", "sys/", "tmp/", "var/"] {
        tar.add(directory, &Entry::Directory);
    }
    tar.add("bin/busybox", &Entry::File { mode: 0o755, content: &busybox });
    for program in PROGRAMS {
        tar.add(&format!("bin/{program}"), &Entry::Link("busybox"));
    }
    tar.finish()
}

fn busybox() -> Vec<u8> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found: Option<PathBuf> = std::env::split_paths(&path)
        .map(|directory| directory.join("busybox"))
        .find(|program| program.exists());
    fs::read(found.expect("busybox was found")).expect("busybox can be read")
}
