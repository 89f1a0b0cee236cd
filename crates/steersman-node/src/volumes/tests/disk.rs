use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::at;
use crate::volumes::ownership::{Group, give_to};
use crate::volumes::payload::File;
use crate::volumes::{
    Backing, LinuxMounter, Medium, MountedPart, Mounter, NewMount, Ownership, Payload, SubPath,
    VolumePlan, host_path, read_below, resolve, set_up, tear_down, writer,
};

/// A directory that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("steersman-volumes-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn join(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Also what a failed test left mounted.
        let _ = tear_down(&self.0, &LinuxMounter);
    }
}

/// Notes what would be mounted.
#[derive(Default)]
struct Noted {
    mounted: Mutex<Vec<NewMount>>,
}

impl Noted {
    fn all(&self) -> Vec<NewMount> {
        self.mounted.lock().unwrap().clone()
    }
}

fn target(mount: &NewMount) -> &Path {
    match mount {
        NewMount::Tmpfs { target, .. }
        | NewMount::HugePages { target, .. }
        | NewMount::Bind { target, .. }
        | NewMount::ReadOnlyBind { target, .. }
        | NewMount::ReadOnly { target, .. } => target,
    }
}

impl Mounter for Noted {
    fn mount(&self, mount: &NewMount) -> io::Result<()> {
        assert!(target(mount).exists(), "there must be something to mount on: {mount:?}");
        self.mounted.lock().unwrap().push(mount.clone());
        Ok(())
    }

    fn unmount(&self, path: &Path) -> io::Result<()> {
        self.mounted.lock().unwrap().retain(|mount| target(mount) != path);
        Ok(())
    }

    fn mounted_below(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let all = self.all();
        let paths = all.iter().rev().map(|mount| target(mount).to_owned());
        Ok(paths.filter(|path| path.starts_with(directory)).collect())
    }
}

fn file(data: &str, mode: u32) -> File {
    File { data: data.into(), mode, owner: None }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// Everything in a directory: files with their content, links with where they lead.
fn tree(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory).unwrap().map(|it| it.unwrap().path()).collect();
    names.sort();
    let mut found = Vec::new();
    for path in names {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Ok(to) = fs::read_link(&path) {
            found.push(format!("{name} -> {}", to.display()));
        } else if path.is_dir() {
            found.extend(tree(&path).into_iter().map(|inner| format!("{name}/{inner}")));
        } else {
            found.push(format!("{name}={}", fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

#[test]
fn files_are_swapped_at_once() {
    let scratch = Scratch::new();
    let write = |payload: &Payload, second| {
        writer::write(&scratch.0, payload, at(second), || Ok(())).unwrap()
    };
    let first =
        Payload::from([("a".to_owned(), file("1", 0o644)), ("d/./b".to_owned(), file("2", 0o400))]);
    assert!(write(&first, 0));
    assert_eq!(
        tree(&scratch.0),
        [
            "..2026_11_17_12_00_00.000000000/a=1",
            "..2026_11_17_12_00_00.000000000/d/b=2",
            "..data -> ..2026_11_17_12_00_00.000000000",
            "a -> ..data/a",
            "d -> ..data/d",
        ]
    );
    assert_eq!(mode(&scratch.join("a")), 0o644);
    assert_eq!(mode(&scratch.join("d/b")), 0o400);
    assert_eq!(mode(&scratch.join("..data")), 0o755);

    // What has not changed is not written; a link that somebody removed is made again.
    fs::remove_file(scratch.join("a")).unwrap();
    assert!(!write(&first, 1));
    assert_eq!(tree(&scratch.0).len(), 5);
    assert!(tree(&scratch.0).contains(&"..data -> ..2026_11_17_12_00_00.000000000".to_owned()));

    // What has changed is all new, and what is gone is not seen any more.
    let second = Payload::from([("a".to_owned(), file("3", 0o644))]);
    assert!(write(&second, 2));
    assert_eq!(
        tree(&scratch.0),
        [
            "..2026_11_17_12_00_02.000000000/a=3",
            "..data -> ..2026_11_17_12_00_02.000000000",
            "a -> ..data/a",
        ]
    );

    // The same moment again, and nothing at all.
    assert!(write(&first, 2));
    assert!(tree(&scratch.0)[0].starts_with("..2026_11_17_12_00_02.000000001/a="));
    assert!(write(&Payload::new(), 3));
    assert_eq!(tree(&scratch.0), ["..data -> ..2026_11_17_12_00_03.000000000"]);
}

#[test]
fn a_writer_clears_up_after_one_that_was_killed() {
    let scratch = Scratch::new();
    let old = Payload::from([("a".to_owned(), file("1", 0o644))]);
    let new = Payload::from([("a".to_owned(), file("2", 0o644))]);
    writer::write(&scratch.0, &old, at(0), || Ok(())).unwrap();

    // It fails after the new files are there, and before they are seen.
    let error = writer::write(&scratch.0, &new, at(1), || Err(io::Error::other("no"))).unwrap_err();
    assert!(error.to_string().ends_with(": no"), "{error}");
    assert_eq!(fs::read_to_string(scratch.join("a")).unwrap(), "1");
    assert_eq!(tree(&scratch.0).len(), 4);
    symlink("nowhere", scratch.join("..data_tmp")).unwrap();

    writer::write(&scratch.0, &new, at(2), || Ok(())).unwrap();
    assert_eq!(
        tree(&scratch.0),
        [
            "..2026_11_17_12_00_02.000000000/a=2",
            "..data -> ..2026_11_17_12_00_02.000000000",
            "a -> ..data/a",
        ]
    );

    // A link that leads nowhere counts as none.
    fs::remove_dir_all(scratch.join("..2026_11_17_12_00_02.000000000")).unwrap();
    writer::write(&scratch.0, &new, at(3), || Ok(())).unwrap();
    assert_eq!(fs::read_to_string(scratch.join("a")).unwrap(), "2");
}

#[test]
fn paths_of_files_stay_in_their_volume() {
    let scratch = Scratch::new();
    for (path, expected) in [
        ("", "invalid path: must not be empty: \"\""),
        ("/a", "invalid path: must be relative path: /a"),
        ("a/../b", "invalid path: must not contain '..': a/../b"),
        ("..", "invalid path: must not contain '..': .."),
        ("..a", "invalid path: must not start with '..': ..a"),
        (&"a".repeat(256), "invalid path: filenames must be less than or equal to 255 characters"),
        (&"a/".repeat(2049), "invalid path: must be less than or equal to 4096 characters"),
    ] {
        let payload = Payload::from([(path.to_owned(), file("", 0o644))]);
        let error = writer::write(&scratch.0, &payload, at(0), || Ok(())).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(tree(&scratch.0), [""; 0]);
    }
}

#[test]
fn a_group_gets_all_files_and_what_is_made_later() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("d")).unwrap();
    fs::write(scratch.join("d/f"), "1").unwrap();
    symlink("d/f", scratch.join("link")).unwrap();
    let private = |path: &str, mode| {
        fs::set_permissions(scratch.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    // Our own group, which everybody may give files to.
    let id = fs::metadata(&scratch.0).unwrap().gid();
    let group = Group { id, read_only: false, only_if_root_differs: true };
    let modes = || [mode(&scratch.0), mode(&scratch.join("d")), mode(&scratch.join("d/f"))];

    private("d/f", 0o600);
    private("d", 0o700);
    private(".", 0o700);
    give_to(&scratch.0, group).unwrap();
    assert_eq!(modes(), [0o2770, 0o2770, 0o660]);

    // As long as the root is right, the rest is left alone if that is the policy.
    private("d/f", 0o600);
    give_to(&scratch.0, group).unwrap();
    assert_eq!(modes(), [0o2770, 0o2770, 0o600]);
    give_to(&scratch.0, Group { only_if_root_differs: false, ..group }).unwrap();
    assert_eq!(modes(), [0o2770, 0o2770, 0o660]);

    private("d/f", 0o400);
    private("d", 0o700);
    private(".", 0o755);
    give_to(&scratch.0, Group { read_only: true, ..group }).unwrap();
    assert_eq!(modes(), [0o2755, 0o2750, 0o440]);
}

#[test]
fn paths_of_the_node_are_what_their_type_says() {
    let scratch = Scratch::new();
    fs::write(scratch.join("file"), "").unwrap();
    let _socket = UnixListener::bind(scratch.join("socket")).unwrap();
    let told = |path: &str, kind: &str| {
        let path = if path.starts_with('/') { path.into() } else { scratch.join(path) };
        let told = host_path::check(&path, kind).err().map(|error| error.to_string());
        told.unwrap_or_default().replace(&format!("{}/", scratch.0.display()), "")
    };
    for (path, kind, expected) in [
        ("none", "", ""),
        (".", "Directory", ""),
        ("file", "Directory", "hostPath type check failed: file is not a directory"),
        ("none", "Directory", "hostPath type check failed: none is not a directory"),
        ("file", "File", ""),
        ("none", "File", "hostPath type check failed: none is not a file"),
        ("socket", "Socket", ""),
        ("file", "Socket", "hostPath type check failed: file is not a socket file"),
        ("/dev/null", "CharDevice", ""),
        ("file", "CharDevice", "hostPath type check failed: file is not a character device"),
        ("/dev/null", "BlockDevice", "hostPath type check failed: /dev/null is not a block device"),
        ("file", "DirectoryOrCreate", "hostPath type check failed: file is not a directory"),
        ("new/dir", "DirectoryOrCreate", ""),
        ("new/dir", "DirectoryOrCreate", ""),
        ("new/dir", "FileOrCreate", "hostPath type check failed: new/dir is not a file"),
        ("new/file", "FileOrCreate", ""),
        ("file", "Tea", "Tea is an invalid volume type"),
    ] {
        assert_eq!(told(path, kind), expected, "{path} {kind}");
    }
    assert!(scratch.join("new/dir").is_dir());
    assert!(scratch.join("new/file").is_file());
}

#[test]
fn a_part_of_a_volume_is_never_outside_of_it() {
    let scratch = Scratch::new();
    let volume = scratch.join("volume");
    fs::create_dir_all(volume.join("in/side")).unwrap();
    fs::create_dir(scratch.join("secret")).unwrap();
    fs::write(volume.join("file"), "").unwrap();
    symlink("in/side", volume.join("link")).unwrap();
    symlink("../secret", volume.join("out")).unwrap();
    symlink("/", volume.join("root")).unwrap();
    symlink("../volume/in", volume.join("roundabout")).unwrap();
    fs::set_permissions(&volume, fs::Permissions::from_mode(0o2775)).unwrap();

    let pod = scratch.join("pod");
    for (path, made) in [
        ("in", true),
        ("in/side", true),
        ("file", true),
        ("link", true),
        ("new/deep/er", true),
        ("in/../in/side", true),
        ("link/new", true),
        ("out", false),
        ("out/new", false),
        ("root", false),
        ("root/tmp", false),
        ("roundabout", false),
        ("file/new", false),
    ] {
        let mounter = Noted::default();
        let part = SubPath {
            volume: volume.clone(),
            path: path.into(),
            target: format!("parts/{path}/0").into(),
        };
        // Also what a link leads to outside.
        let there = fs::exists(volume.join(path)).unwrap_or(true);
        let found =
            resolve(&part, MountedPart { volume: "data", container: "main" }, &pod, &mounter);
        if made {
            assert_eq!(found.unwrap(), pod.join(&part.target), "{path}");
            let [NewMount::Bind { target, .. }] = &mounter.all()[..] else { panic!("{path}") };
            assert_eq!(target.is_dir(), volume.join(path).is_dir(), "{path}");
        } else {
            let error = found.unwrap_err().to_string();
            let tried = match there {
                true => "failed to prepare subPath",
                false => "failed to create subPath directory",
            };
            let said = format!("{tried} for volumeMount \"data\" of container \"main\"");
            assert_eq!(error, said, "{path}");
            assert_eq!(mounter.all(), []);
        }
    }
    // What was made is like the volume, and nothing was made elsewhere.
    assert_eq!(mode(&volume.join("new")), 0o2775);
    assert_eq!(mode(&volume.join("new/deep/er")), 0o2775);
    assert!(volume.join("in/side/new").is_dir());
    assert_eq!(tree(&scratch.join("secret")), [""; 0]);
}

#[test]
fn files_of_variables_are_read_without_leaving_the_volume() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("volume")).unwrap();
    fs::write(scratch.join("volume/env"), "A='1'").unwrap();
    fs::write(scratch.join("secret"), "A='2'").unwrap();
    symlink("../secret", scratch.join("volume/out")).unwrap();
    let volume = scratch.join("volume");
    assert_eq!(read_below(&volume, "env").content.unwrap(), "A='1'");
    assert_eq!(read_below(&volume, "env").path, volume.join("env"));
    assert!(read_below(&volume, "out").content.is_err());
    assert!(read_below(&volume, "none").content.is_err());
}

#[test]
fn volumes_are_set_up_again_and_again_and_removed_with_what_is_mounted() {
    let scratch = Scratch::new();
    let mounter = Noted::default();
    let pod = scratch.join("pod");
    let ownership =
        Ownership { group: Some(fs::metadata(&scratch.0).unwrap().gid()), ..Default::default() };
    let volume = |name: &str, backing| VolumePlan {
        name: name.into(),
        path: pod.join("volumes").join(name),
        backing,
        read_only: false,
    };
    let files = |content: &str| Backing::Files {
        medium: Medium::Memory { size: Some(4096) },
        payload: Payload::from([("a".to_owned(), file(content, 0o600))]),
        nested: vec!["inner/most".into()],
    };
    let make = |volume: &VolumePlan, second| set_up(volume, ownership, &mounter, at(second));

    make(&volume("disk", Backing::Empty(Medium::Disk)), 0).unwrap();
    assert_eq!(mode(&pod.join("volumes/disk")), 0o2777);
    fs::write(pod.join("volumes/disk/kept"), "x").unwrap();
    make(&volume("disk", Backing::Empty(Medium::Disk)), 1).unwrap();
    assert_eq!(tree(&pod.join("volumes/disk")), ["kept=x"]);

    make(&volume("files", files("1")), 0).unwrap();
    make(&volume("files", files("2")), 1).unwrap();
    let directory = pod.join("volumes/files");
    let tmpfs = NewMount::Tmpfs { target: directory.clone(), size: Some(4096) };
    assert_eq!(mounter.all(), [tmpfs]);
    assert_eq!(fs::read_to_string(directory.join("a")).unwrap(), "2");
    assert_eq!(mode(&directory.join("a")), 0o640, "the group may read it");
    assert!(directory.join("inner/most").is_dir());

    let missing = VolumePlan { path: scratch.join("none"), ..volume("local", Backing::Local) };
    let error = make(&missing, 0).unwrap_err();
    assert_eq!(error.to_string(), format!("path {:?} does not exist", scratch.join("none")));

    tear_down(&pod, &mounter).unwrap();
    assert_eq!(mounter.all(), []);
    assert!(!pod.exists());
    tear_down(&pod, &mounter).unwrap();
}

#[test]
fn nothing_is_removed_while_something_is_mounted() {
    struct Stuck(PathBuf);
    impl Mounter for Stuck {
        fn mount(&self, _: &NewMount) -> io::Result<()> {
            Ok(())
        }
        fn unmount(&self, _: &Path) -> io::Result<()> {
            Ok(())
        }
        fn mounted_below(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
            Ok(vec![self.0.clone()])
        }
    }
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.join("pod/data")).unwrap();
    let stuck = Stuck(scratch.join("pod/data"));
    assert!(
        tear_down(&scratch.join("pod"), &stuck).unwrap_err().to_string().ends_with("still mounted")
    );
    assert!(scratch.join("pod/data").exists());
}

#[test]
fn the_kernel_mounts_for_root_and_for_nobody_else() {
    let scratch = Scratch::new();
    let (memory, bound) = (scratch.join("memory"), scratch.join("bound"));
    fs::create_dir(&memory).unwrap();
    fs::create_dir(&bound).unwrap();
    let tmpfs = NewMount::Tmpfs { target: memory.clone(), size: Some(65536) };
    let bind = NewMount::Bind { source: memory.clone(), target: bound.clone() };
    if let Err(error) = LinuxMounter.mount(&tmpfs) {
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(!LinuxMounter.is_mounted(&memory).unwrap());
        return;
    }
    LinuxMounter.mount(&bind).unwrap();
    let too_much = fs::write(memory.join("much"), vec![0; 100_000]).unwrap_err();
    assert_eq!(too_much.kind(), io::ErrorKind::StorageFull);
    fs::remove_file(memory.join("much")).unwrap();
    fs::write(memory.join("little"), "x").unwrap();
    assert_eq!(fs::read_to_string(bound.join("little")).unwrap(), "x");
    assert_eq!(LinuxMounter.mounted_below(&scratch.0).unwrap(), [bound, memory]);
    tear_down(&scratch.0, &LinuxMounter).unwrap();
    assert!(!scratch.0.exists());
}
