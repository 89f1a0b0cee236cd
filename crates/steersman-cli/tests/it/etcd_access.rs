//! An etcd that wants certificates and a password.

use crate::etcd_process::{Etcd, Tls};
use crate::program::{Program, directory, steersman};

/// The one line in which the program refuses to start.
fn refused(arguments: &[String]) -> String {
    let mut command = steersman(&["up", "--listen", "127.0.0.1:0", "--kubeconfig", "/dev/null"]);
    let output = command.env_remove("STEERSMAN_ETCD_PASSWORD").args(arguments).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_and_a_password_open_an_etcd_that_wants_them() {
    let tls = Tls::new();
    let etcd = Etcd::builder().tls(&tls).start().await;
    for command in ["user add root:secret", "user grant-role root root", "auth enable"] {
        etcd.ctl(&command.split(' ').collect::<Vec<_>>());
    }
    let directory = directory();
    let file = |name: &str, content: &str| {
        let path = directory.join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let (ca, certificate) = (file("ca", &tls.ca), file("certificate", &tls.certificate));
    let (key, password) = (file("key", &tls.key), file("password", "secret\n"));
    let endpoints = etcd.endpoints();
    let known = ["--etcd-cafile", &ca, "--etcd-certfile", &certificate, "--etcd-keyfile", &key];
    let user = ["--etcd-user", "root", "--etcd-password-file", &password];

    let program = Program::up_on_etcd(&endpoints, &[&known[..], &user[..]].concat());
    program.says("create configmap a", &["created"]);
    let found = etcd.ctl(&["--user=root:secret", "get", "/registry/configmaps/", "--prefix"]);
    assert!(found.contains("/registry/configmaps/default/a"), "{found}");

    let with = |flags: &[&str]| {
        let flags = [&["--etcd", &endpoints[0]], flags].concat();
        refused(&flags.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    assert!(with(&[]).contains("authority"), "https needs a cafile");
    let nobody = with(&known);
    assert!(nobody.contains("user"), "{nobody}");
    let speechless = with(&[&known[..], &user[..2]].concat());
    assert!(speechless.contains("STEERSMAN_ETCD_PASSWORD"), "{speechless}");
    let lost = with(&["--etcd-cafile", "/nowhere/ca"]);
    assert!(lost.contains("cannot read /nowhere/ca"), "{lost}");
    std::fs::remove_dir_all(&directory).unwrap();
}
