//! A disk in memory that remembers what was synced, and can lose the rest.
//!
//! Every step that changes something is counted. A test can look at the disk before each of them
//! (each is a moment at which the power can go), and can let one of them fail. [`Image::crash`]
//! makes of a moment what may be found after it: of what was not synced, any part may be there,
//! also the later without the earlier, torn anywhere, or as zeros. What was to be written when a
//! sync failed is still read, and no later sync writes it, as Linux has it.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use crate::disk::files::{File, Files, Pieces};

/// What is on the disk at a moment.
#[derive(Clone, Default)]
pub(super) struct Image {
    /// Files, with or without a name.
    nodes: Vec<Node>,
    names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
}

#[derive(Clone, Default)]
struct Node {
    synced: Arc<Vec<u8>>,
    content: Arc<Vec<u8>>,
    /// What a failed sync has lost: it counts as written until it is written again.
    lost: Range<usize>,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Create,
    Write,
    Cut,
    Rename,
    Remove,
    Sync,
    SyncDirectory,
}

/// Called before each step with what the disk is then.
pub(super) type Observer = Box<dyn FnMut(&Image) + Send>;

#[derive(Default)]
struct Inner {
    image: Image,
    steps: Vec<Step>,
    observer: Option<Observer>,
    /// The step that fails, counted from zero, and how.
    fault: Option<(usize, io::ErrorKind)>,
    available: Option<u64>,
    /// How large the largest file was that was removed at once.
    removed: usize,
}

/// The disk.
#[derive(Clone, Default)]
pub(super) struct Disk(Arc<Mutex<Inner>>);

struct OpenFile {
    disk: Disk,
    node: usize,
}

impl Disk {
    pub(super) fn of(image: Image) -> Self {
        Self(Arc::new(Mutex::new(Inner { image, ..Inner::default() })))
    }

    pub(super) fn observe(&self, observer: Observer) {
        self.0.lock().unwrap().observer = Some(observer);
    }

    /// Lets one step fail.
    pub(super) fn fail(&self, step: usize, kind: io::ErrorKind) {
        self.0.lock().unwrap().fault = Some((step, kind));
    }

    /// Says how much room is left; there is as much as there was.
    pub(super) fn claim_available(&self, bytes: u64) {
        self.0.lock().unwrap().available = Some(bytes);
    }

    pub(super) fn image(&self) -> Image {
        self.0.lock().unwrap().image.clone()
    }

    /// How large the largest file was that was removed at once.
    pub(super) fn largest_removed(&self) -> usize {
        self.0.lock().unwrap().removed
    }

    /// What has been done.
    pub(super) fn steps(&self) -> Vec<Step> {
        self.0.lock().unwrap().steps.clone()
    }

    /// Does one step. A write that fails has written the first half, a sync nothing.
    fn step<T>(
        &self,
        step: Step,
        act: impl FnOnce(&mut Image, bool) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut inner = self.0.lock().unwrap();
        let Inner { image, steps, observer, fault, .. } = &mut *inner;
        if let Some(observer) = observer {
            observer(image);
        }
        steps.push(step);
        let fault = fault.filter(|(failing, _)| *failing + 1 == steps.len());
        match (fault, step) {
            (Some((_, kind)), Step::Write | Step::Sync) => act(image, true).and(Err(kind.into())),
            (Some((_, kind)), _) => Err(kind.into()),
            (None, _) => act(image, false),
        }
    }
}

impl Image {
    /// What may be found when the power goes at this moment.
    pub(super) fn crash(&self, random: &mut StdRng) -> Self {
        let nodes = self.nodes.iter().map(|node| node.crash(random)).collect();
        let mut names = self.synced_names.clone();
        for (name, node) in &self.names {
            if self.synced_names.get(name) != Some(node) && random.random() {
                names.insert(name.clone(), *node);
            }
        }
        names.retain(|name, _| self.names.contains_key(name) || random.random());
        Self { nodes, synced_names: names.clone(), names }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.names.remove(name);
    }

    pub(super) fn content(&mut self, name: &str) -> &mut Vec<u8> {
        Arc::make_mut(&mut self.nodes[self.names[name]].content)
    }

    pub(super) fn bytes(&self) -> usize {
        self.names.values().map(|node| self.nodes[*node].content.len()).sum()
    }

    /// The size of the largest file.
    pub(super) fn largest(&self) -> usize {
        let sizes = self.names.values().map(|node| self.nodes[*node].content.len());
        sizes.max().unwrap_or(0)
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Node {
    fn crash(&self, random: &mut StdRng) -> Self {
        if Arc::ptr_eq(&self.synced, &self.content) {
            return self.clone();
        }
        let (old, new) = (&self.synced, &self.content);
        let (shorter, longer) = (old.len().min(new.len()), old.len().max(new.len()));
        let length = match random.random_range(0..4) {
            0 => old.len(),
            1 => random.random_range(shorter..=longer),
            _ => new.len(),
        };
        let page = [1, 8, 64, 4096][random.random_range(0..4)];
        let mut found = vec![0; length];
        for (number, bytes) in found.chunks_mut(page).enumerate() {
            let start = number * page;
            match random.random_range(0..6) {
                0 => fill(bytes, old, start),
                1 => {}
                2 => {
                    let torn = random.random_range(0..=bytes.len());
                    fill(bytes, old, start);
                    fill(&mut bytes[..torn], new, start);
                }
                _ => fill(bytes, new, start),
            }
        }
        // What was synced and not changed since is there.
        for at in 0..length.min(shorter) {
            if old[at] == new[at] {
                found[at] = old[at];
            }
        }
        let found = Arc::new(found);
        Self { synced: Arc::clone(&found), content: found, lost: 0..0 }
    }

    fn sync(&mut self, fails: bool) {
        if fails {
            let same = self.synced.iter().zip(&*self.content).take_while(|(old, new)| old == new);
            self.lost = same.count()..self.content.len();
        } else if self.lost.is_empty() {
            self.synced = Arc::clone(&self.content);
        } else {
            let mut found = Vec::clone(&self.content);
            fill(&mut found[self.lost.clone()], &self.synced, self.lost.start);
            self.synced = Arc::new(found);
        }
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let content = Arc::make_mut(&mut self.content);
        let end = offset + bytes.len();
        content.resize(content.len().max(end), 0);
        content[offset..end].copy_from_slice(bytes);
        if offset <= self.lost.start {
            self.lost.start = self.lost.start.max(end);
        }
    }

    fn cut(&mut self, size: usize) {
        Arc::make_mut(&mut self.content).truncate(size);
        self.lost.end = self.lost.end.min(size);
    }
}

/// Copies what a file has from a place on, and zeros after its end.
fn fill(bytes: &mut [u8], content: &[u8], start: usize) {
    for (number, byte) in bytes.iter_mut().enumerate() {
        *byte = content.get(start + number).copied().unwrap_or(0);
    }
}

impl Files for Disk {
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("simulated").join(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.image().names())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        let node = self.step(Step::Create, |image, _| {
            image.nodes.push(Node::default());
            image.names.insert(name.to_owned(), image.nodes.len() - 1);
            Ok(image.nodes.len() - 1)
        })?;
        Ok(Box::new(OpenFile { disk: self.clone(), node }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        let node = self.0.lock().unwrap().image.find(name)?;
        Ok(Box::new(OpenFile { disk: self.clone(), node }))
    }

    fn open_to_write(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.step(Step::Rename, |image, _| {
            let node = image.find(from)?;
            image.names.remove(from);
            image.names.insert(to.to_owned(), node);
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let size = self.step(Step::Remove, |image, _| {
            let size = image.nodes[image.find(name)?].content.len();
            image.names.remove(name);
            Ok(size)
        })?;
        let mut inner = self.0.lock().unwrap();
        inner.removed = inner.removed.max(size);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.step(Step::SyncDirectory, |image, _| {
            image.synced_names = image.names.clone();
            Ok(())
        })
    }

    fn available(&self) -> Option<u64> {
        self.0.lock().unwrap().available
    }

    fn pieces(&self) -> Pieces {
        Pieces { bytes: 300, pause: Duration::ZERO }
    }
}

impl File for OpenFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.0.lock().unwrap().image.nodes[self.node].content.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let inner = self.disk.0.lock().unwrap();
        let content = &inner.image.nodes[self.node].content;
        let from = offset as usize;
        let bytes = content.get(from..from + buffer.len());
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.disk.step(Step::Write, |image, half| {
            let bytes = if half { &bytes[..bytes.len() / 2] } else { bytes };
            image.nodes[self.node].write(offset as usize, bytes);
            Ok(())
        })
    }

    fn cut(&mut self, size: u64) -> io::Result<()> {
        self.disk.step(Step::Cut, |image, _| {
            image.nodes[self.node].cut(size as usize);
            Ok(())
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.step(Step::Sync, |image, fails| {
            image.nodes[self.node].sync(fails);
            Ok(())
        })
    }

    fn is_removed(&self) -> bool {
        !self.disk.0.lock().unwrap().image.names.values().any(|node| *node == self.node)
    }
}
