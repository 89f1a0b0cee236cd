//! What goes wrong is told in one line, with exit code 1.

use std::net::TcpListener;
use std::process::Output;
use std::time::Duration;

use crate::program::{Program, directory, steersman};

/// Runs the program, which must fail, and returns the one line it says.
fn refused(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = steersman(arguments).output().unwrap();
    let text = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(1), "{text}");
    assert!(stdout.is_empty(), "{}", String::from_utf8_lossy(&stdout));
    assert_eq!(text.lines().count(), 1, "more than one line: {text}");
    text
}

fn kubeconfig() -> String {
    directory().join("kubeconfig").display().to_string()
}

#[test]
fn a_port_in_use_is_one_clear_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let text = refused(&["up", "--listen", &address, "--kubeconfig", &kubeconfig()]);
    assert!(
        text.contains(&address) && text.contains("in use") && text.contains("--listen"),
        "{text}"
    );
}

#[test]
fn an_unwritable_kubeconfig_is_one_clear_line() {
    let file = "/dev/null/kubeconfig";
    let text = refused(&["up", "--memory", "--listen", "127.0.0.1:0", "--kubeconfig", file]);
    assert!(text.contains(file) && text.contains("--kubeconfig"), "{text}");
}

#[test]
fn a_bad_flag_or_value_is_one_clear_line() {
    assert!(refused(&["up", "--bogus"]).contains("--bogus"));
    assert!(refused(&["up", "--nodes", "many"]).contains("many"));
    assert!(refused(&["up", "--listen", "nowhere"]).contains("nowhere"));
    assert!(refused(&["up", "--advertise-address", "0.0.0.0"]).contains("--advertise-address"));
    let unknown = "enable-admission-plugins plugin \"Nonsense\" is unknown";
    assert!(refused(&["up", "--enable-admission-plugins", "Nonsense"]).contains(unknown));
    assert!(refused(&["down"]).contains("down"));
}

#[test]
fn a_file_of_nodes_that_makes_no_sense_is_one_clear_line() {
    let file = directory().join("nodes.yaml");
    let path = file.display().to_string();
    let up = |nodes: &str| {
        let listen = ["--memory", "--listen", "127.0.0.1:0"];
        refused(&[&["up", "--nodes", nodes, "--nodes-file", &path], &listen[..]].concat())
    };
    assert!(up("0").contains("No such file"), "{}", up("0"));
    for (text, nodes, expected) in [
        ("- {prefix: a-, colour: red}", "0", "unknown field `colour`"),
        ("- {prefix: A}", "0", "no node can be called \"A0\""),
        ("- {prefix: node-}", "1", "the prefix of those that --nodes asks for"),
        ("- [", "0", "nodes.yaml: "),
    ] {
        std::fs::write(&file, text).unwrap();
        let told = up(nodes);
        assert!(told.contains(expected) && told.contains("nodes.yaml"), "{told}");
    }
}

#[test]
fn files_about_users_that_make_no_sense_are_one_clear_line() {
    let directory = directory();
    let file = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let config = |jwt: &str| {
        format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n{jwt}\n"
        )
    };
    let expression = config(
        "jwt: [{issuer: {url: https://i.test, audiences: [a]}, claimMappings: {username: \
         {expression: claim.sub}}}]",
    );
    for (flag, path, parts) in [
        ("--token-auth-file", file("short.csv", "token,jane\n"), ["short.csv", "3 columns"]),
        ("--token-auth-file", "/nowhere.csv".to_owned(), ["/nowhere.csv", "No such file"]),
        ("--authentication-config", file("odd.yaml", "jwt: [\n"), ["odd.yaml", "not an"]),
        ("--authentication-config", file("unknown.yaml", &config("jwts: []")), ["unknown", "jwts"]),
        (
            "--authentication-config",
            file("cel.yaml", &expression),
            ["username.expression", "undeclared reference"],
        ),
        (
            "--authentication-token-webhook-config-file",
            file("whose.conf", "current-context: nobody\n"),
            ["whose.conf", "no context \"nobody\""],
        ),
        ("--requestheader-client-ca-file", file("ca.pem", "none"), ["ca.pem", "requestheader"]),
    ] {
        let text = refused(&["up", "--memory", "--listen", "127.0.0.1:0", flag, &path]);
        assert!(parts.iter().all(|part| text.contains(part)) && text.contains(flag), "{text}");
    }
}

#[test]
fn ctrl_c_stops_it_cleanly_within_a_second() {
    let mut program = Program::up(&[]);
    let pid = program.child.id().to_string();
    // An open watch must not delay the end.
    let (mut watch, _output) = program.kubectl_in_background(&["get", "nodes", "-w"]);
    program.kubectl(&["get", "nodes"]);
    let signalled = std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(signalled.success());
    let began = tokio::time::Instant::now();
    let status = program.child.wait().unwrap();
    assert!(status.success(), "{status}");
    assert!(began.elapsed() < Duration::from_secs(5), "took {:?}", began.elapsed());
    watch.kill().unwrap();
    watch.wait().unwrap();
}
