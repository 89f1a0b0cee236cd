//! What is remembered of Pods, in the directory of each, with which it goes.

use std::fs;
use std::io;

use super::places::Places;
use crate::runtime::Ledger;

/// One file for each Pod.
#[derive(Debug)]
pub(super) struct Files {
    places: Places,
}

impl Files {
    pub(super) fn in_directories_of(places: &Places) -> Self {
        Self { places: places.clone() }
    }

    /// Replaces the file at once: whoever is killed meanwhile leaves the old one or the new.
    fn replace(&self, uid: &str, text: &str) -> io::Result<()> {
        let path = self.places.allocation(uid);
        let new = path.with_extension("new");
        fs::create_dir_all(self.places.of_pod(uid))?;
        fs::write(&new, text)?;
        fs::rename(&new, &path)
    }
}

impl Ledger for Files {
    fn read(&self, uid: &str) -> Option<String> {
        fs::read_to_string(self.places.allocation(uid)).ok()
    }

    fn write(&self, uid: &str, text: &str) {
        if let Err(error) = self.replace(uid, text) {
            tracing::warn!(%error, uid, "what a Pod was given is not kept for the next agent");
        }
    }

    fn erase(&self, uid: &str) {
        match fs::remove_file(self.places.allocation(uid)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, uid, "what a Pod was given stays kept");
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_last_is_read_until_it_is_erased() {
        let root = std::env::temp_dir().join(format!("steersman-ledger-{}", std::process::id()));
        let places = Places { logs: root.clone(), links: root.clone(), root: root.clone() };
        let files = Files::in_directories_of(&places);
        assert_eq!(files.read("u"), None);
        for text in ["first", "second"] {
            files.write("u", text);
            assert_eq!(files.read("u").as_deref(), Some(text));
        }
        assert_eq!(fs::read_dir(places.of_pod("u")).unwrap().count(), 1);
        files.erase("u");
        files.erase("u");
        assert_eq!(files.read("u"), None);
        fs::remove_dir_all(&root).unwrap();
    }
}
