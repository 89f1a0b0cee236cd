//! Who may use an image that was pulled with what is in a Secret: Pods that have it as well.
//!
//! Kept on disk, since the next agent has to know it too. What was not pulled by an agent anybody may
//! use, as with the policy `NeverVerifyPreloadedImages` of a
//! [kubelet](https://kubernetes.io/docs/concepts/containers/images/#ensureimagepullcredentialverification).
//! That a pull begins is noted before it does: if nobody notes how it ends, because the agent was killed
//! meanwhile, the image is one of which nobody knows who may use it, and not one for everybody.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use steersman::clock;

use super::credentials::{Credentials, Origin, hash};
use super::locked;
use super::places::entries;
use crate::cri::wire::image::Image;
use crate::runtime::image_name;

/// How many Secrets are noted for an image that were not what it was pulled with.
const OPENERS_MAX: usize = 100;

/// The permits of all images.
pub(super) struct Permits {
    directory: PathBuf,
    /// Of whoever changes a file.
    turn: Mutex<()>,
}

/// The permits of one image.
#[derive(Debug, Deserialize, Serialize)]
struct Record {
    /// The runtime's name for it.
    image: String,
    /// When it was changed last, in milliseconds.
    changed: i64,
    /// By the name that Pods call it, without tag and digest.
    names: BTreeMap<String, Permit>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
struct Permit {
    everybody: bool,
    openers: Vec<Opener>,
}

/// A Secret with which an image can be pulled.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Opener {
    origin: Origin,
    /// Of what was in it.
    hash: String,
}

impl Opener {
    fn of(credentials: &Credentials) -> Self {
        Self { origin: credentials.origin().clone(), hash: credentials.hash() }
    }
}

impl Permit {
    /// Lets whoever has this use it too, or everybody.
    fn extend(&mut self, opener: Option<Opener>) {
        match opener {
            None => *self = Self { everybody: true, openers: Vec::new() },
            Some(_) if self.everybody => {}
            Some(opener) => {
                self.openers.retain(|known| known.origin != opener.origin);
                self.openers.push(opener);
            }
        }
    }

    /// Whether it is for whoever has this, and whether that is news.
    fn admits(&self, opener: &Opener) -> Option<bool> {
        if self.openers.contains(opener) {
            return Some(false);
        }
        let room = self.openers.len() < OPENERS_MAX;
        if self.openers.iter().any(|known| known.hash == opener.hash) {
            return Some(room);
        }
        // The same Secret with something else in it is believed to be a newer one.
        (room && self.openers.iter().any(|known| known.origin == opener.origin)).then_some(true)
    }
}

impl Permits {
    pub(super) fn in_directory(directory: PathBuf) -> Self {
        Self { directory, turn: Mutex::default() }
    }

    /// Notes that an image is going to be pulled.
    pub(super) fn begin(&self, name: &str) -> io::Result<()> {
        let _turn = locked(&self.turn);
        let path = self.begun(name);
        self.write(&path, name)
    }

    /// Notes that an image was not pulled after all.
    pub(super) fn not_pulled(&self, name: &str) {
        let _turn = locked(&self.turn);
        self.end(name);
    }

    /// Notes that an image was pulled which a Pod calls so, and with what: with nothing, everybody
    /// could have pulled it.
    pub(super) fn pulled(&self, name: &str, image: &str, with: Option<&Credentials>) {
        let _turn = locked(&self.turn);
        match self.add(name, image, with.map(Opener::of)) {
            Ok(()) => self.end(name),
            // It stays one that is being pulled, which nobody may use without asking its registry.
            Err(error) => tracing::warn!(%error, image, "who may use an image is not noted"),
        }
    }

    /// Whether a Pod may use an image that is there, which it calls so and for which it has this.
    pub(super) fn admits<E>(
        &self,
        name: &str,
        image: &Image,
        own: impl FnOnce() -> Result<Vec<Credentials>, E>,
    ) -> Result<bool, E> {
        let _turn = locked(&self.turn);
        let record = match self.read(&image.id) {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(!self.is_begun(name, image)),
            Err(error) => {
                tracing::warn!(%error, image = image.id, "cannot read who may use an image");
                return Ok(false);
            }
        };
        let Some(permit) = record.names.get(image_name::without_tag(name)) else {
            return Ok(false);
        };
        if permit.everybody {
            return Ok(true);
        }
        for opener in own()?.iter().map(Opener::of) {
            let Some(is_new) = permit.admits(&opener) else { continue };
            if is_new && let Err(error) = self.add(name, &image.id, Some(opener)) {
                tracing::warn!(%error, image = image.id, "who may use an image is not noted");
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Forgets the images that were not there at this moment.
    pub(super) fn prune(&self, there: &HashSet<&str>, at: Timestamp) {
        let _turn = locked(&self.turn);
        for path in entries(&self.directory.join("pulled")) {
            let Ok(Some(record)) = read(&path) else { continue };
            if record.changed >= at.as_millisecond() || there.contains(record.image.as_str()) {
                continue;
            }
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(%error, image = record.image, "who may use an image stays noted");
            }
        }
    }

    fn add(&self, name: &str, image: &str, opener: Option<Opener>) -> io::Result<()> {
        // What cannot be read is not worth keeping.
        let mut record = self.read(image).ok().flatten().unwrap_or_else(|| Record {
            image: image.to_owned(),
            changed: 0,
            names: BTreeMap::new(),
        });
        let name = image_name::without_tag(name).to_owned();
        record.names.entry(name).or_default().extend(opener);
        record.changed = clock::now().as_millisecond();
        let path = self.path(image);
        let new = path.with_extension("new");
        self.write(&new, &serde_json::to_string(&record)?)?;
        fs::rename(&new, &path)
    }

    fn end(&self, name: &str) {
        match fs::remove_file(self.begun(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, name, "an image stays one that is being pulled");
            }
            _ => {}
        }
    }

    /// Whether a pull has begun of an image, under any name, and has not ended.
    fn is_begun(&self, name: &str, image: &Image) -> bool {
        let others = image.repo_tags.iter().chain(&image.repo_digests).map(String::as_str);
        others.chain([name]).any(|name| self.begun(name).exists())
    }

    fn begun(&self, name: &str) -> PathBuf {
        let full = image_name::full(name);
        self.directory.join("pulling").join(format!("sha256-{}", hash(full.as_bytes())))
    }

    fn path(&self, image: &str) -> PathBuf {
        self.directory.join("pulled").join(format!("sha256-{}", hash(image.as_bytes())))
    }

    /// Writes what only the agent may see.
    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        let directory = path.parent().unwrap_or(&self.directory);
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())
    }

    fn read(&self, image: &str) -> io::Result<Option<Record>> {
        read(&self.path(image))
    }
}

fn read(path: &Path) -> io::Result<Option<Record>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(serde_json::from_str(&text)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::os::unix::fs::PermissionsExt;

    use jiff::SignedDuration;

    use super::*;
    use crate::runtime::real::credentials::of_secret;

    const NAME: &str = "ghcr.io/team/web:1";

    /// Permits in a directory of their own.
    struct Scene {
        permits: Permits,
        image: Image,
    }

    impl Scene {
        fn new(name: &str) -> Self {
            let name = format!("steersman-permits-{name}-{}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&directory);
            let image = Image { id: "sha256:1".into(), ..Image::default() };
            Self { permits: Permits::in_directory(directory), image }
        }

        fn pull(&self, with: Option<&Credentials>) {
            self.permits.begin(NAME).unwrap();
            self.permits.pulled(NAME, &self.image.id, with);
        }

        fn admits(&self, name: &str, own: &[Credentials]) -> bool {
            let own = || Ok::<_, Infallible>(own.to_vec());
            let Ok(admits) = self.permits.admits(name, &self.image, own);
            admits
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.permits.directory);
        }
    }

    #[test]
    fn what_was_there_before_and_what_needs_no_secret_is_for_everybody() {
        let scene = Scene::new("everybody");
        assert!(scene.admits(NAME, &[]));
        scene.pull(Some(&of_secret("u1", "pw")));
        assert!(!scene.admits(NAME, &[]));
        scene.pull(None);
        assert!(scene.admits(NAME, &[]));
        assert!(scene.admits("ghcr.io/team/web:2", &[]), "the tag does not matter");
        assert!(!scene.admits("quay.io/team/web:1", &[]), "another registry was never asked");
    }

    #[test]
    fn what_was_pulled_with_a_secret_is_for_those_who_have_it_or_what_is_in_it() {
        let scene = Scene::new("secret");
        scene.pull(Some(&of_secret("u1", "pw")));
        for (uid, password, admitted) in [
            ("u1", "pw", true),
            ("u2", "guessed", false),
            ("u2", "pw", true),
            ("u2", "newer", true),
            ("u3", "newer", true),
            ("u3", "pw", true),
            ("u4", "pw", true),
            ("u5", "guessed", false),
        ] {
            let own = [of_secret(uid, password)];
            assert_eq!(scene.admits(NAME, &own), admitted, "{uid} {password}");
        }
        let guesses = [of_secret("u5", "guessed"), of_secret("u1", "pw")];
        assert!(scene.admits(NAME, &guesses), "one of several is enough");
    }

    #[test]
    fn a_pull_of_which_nobody_knows_the_end_is_for_nobody() {
        let mut scene = Scene::new("killed");
        scene.permits.begin("web:1").unwrap();
        scene.image.repo_tags = vec!["docker.io/library/web:1".into()];
        assert!(!scene.admits("web:1", &[]));
        assert!(!scene.admits("web:latest", &[]), "it is the same image");
        scene.permits.not_pulled("web:1");
        assert!(scene.admits("web:1", &[]));
    }

    #[test]
    fn nobody_else_sees_who_may_use_an_image() {
        let scene = Scene::new("private");
        scene.pull(Some(&of_secret("u1", "pw")));
        scene.permits.begin("web:1").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for name in ["pulled", "pulling"] {
            let directory = scene.permits.directory.join(name);
            assert_eq!(mode(&directory), 0o700, "{name}");
            let files = entries(&directory);
            assert_eq!(files.iter().map(|file| mode(file)).collect::<Vec<_>>(), [0o600], "{name}");
        }
    }

    #[test]
    fn what_is_not_there_any_more_is_forgotten_unless_it_has_come_back() {
        let scene = Scene::new("pruned");
        scene.pull(Some(&of_secret("u1", "pw")));
        let [before, after] =
            [-1, 1].map(|seconds| clock::now() + SignedDuration::from_secs(seconds));
        scene.permits.prune(&HashSet::new(), before);
        scene.permits.prune(&HashSet::from(["sha256:1"]), after);
        assert!(!scene.admits(NAME, &[]));
        scene.permits.prune(&HashSet::new(), after);
        assert!(scene.admits(NAME, &[]));
    }
}
