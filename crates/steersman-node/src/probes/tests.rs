use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, Probe};
use prost::Message as _;
use serde_json::{Value, from_value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::grpc::{HealthCheckRequest, HealthCheckResponse, ServingStatus};
use super::tcp;
use super::{
    Answer, ContainerProbes, Exec, ExecError, ExecOutput, Kind, Observed, Phase, Step, Target,
    Verdict, Worker, probe,
};

/// Seconds after the agent was started.
fn at(second: i64) -> Timestamp {
    "2026-11-17T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(second)
}

fn worker(kind: Kind, rest: Value) -> Worker {
    let probe: Probe = from_value(rest).unwrap();
    Worker::new(kind, &probe, at(0))
}

/// A container that runs.
fn running(id: &str, since: i64, started: bool) -> Observed<'_> {
    let phase = Phase::Running { since: at(since), started };
    Observed { container: Some((id, phase)), deleting: false, over: false }
}

fn failure() -> Answer {
    Answer::Failure("no".into())
}

#[test]
fn a_worker_waits_for_its_container_and_its_initial_delay() {
    let mut worker =
        worker(Kind::Liveness, json!({ "initialDelaySeconds": 5, "periodSeconds": 3 }));
    assert_eq!(worker.period(), SignedDuration::from_secs(3));
    let none = Observed { container: None, deleting: false, over: false };
    let waiting = Observed { container: Some(("a", Phase::Waiting)), ..none };
    assert_eq!(worker.look(&none, at(1)), Step::Wait);
    assert_eq!(worker.verdict("a"), None);
    assert_eq!(worker.look(&waiting, at(1)), Step::Wait);
    for (second, expected) in [(2, Step::Wait), (6, Step::Wait), (7, Step::Probe)] {
        assert_eq!(worker.look(&running("a", 2, true), at(second)), expected, "{second}");
    }
}

#[test]
fn other_probes_wait_for_the_startup_probe_and_it_stops_when_it_is_done() {
    for (kind, started, expected) in [
        (Kind::Startup, false, Step::Probe),
        (Kind::Startup, true, Step::Wait),
        (Kind::Liveness, false, Step::Wait),
        (Kind::Liveness, true, Step::Probe),
        (Kind::Readiness, false, Step::Wait),
        (Kind::Readiness, true, Step::Probe),
    ] {
        let mut worker = worker(kind, json!({}));
        assert_eq!(worker.look(&running("a", 1, started), at(2)), expected, "{kind} {started}");
    }
}

#[test]
fn until_somebody_looked_a_container_lives_is_not_ready_and_has_not_started() {
    for (kind, expected) in [
        (Kind::Startup, Verdict::Unknown),
        (Kind::Liveness, Verdict::Success),
        (Kind::Readiness, Verdict::Failure),
    ] {
        let mut worker = worker(kind, json!({}));
        worker.look(&running("a", 1, true), at(2));
        assert_eq!(worker.verdict("a"), Some(expected), "{kind}");
        assert_eq!(worker.verdict("b"), None);
    }
}

#[test]
fn answers_count_when_there_are_enough_of_them_in_a_row() {
    let thresholds = json!({ "successThreshold": 2, "failureThreshold": 3 });
    let mut worker = worker(Kind::Readiness, thresholds);
    worker.look(&running("a", 1, true), at(2));
    let unknown = Answer::Unknown("?".into());
    let warning = Answer::Warning("!".into());
    for (number, (answer, changed, verdict)) in [
        (Answer::Success, false, Verdict::Failure),
        // A probe that goes wrong itself neither counts nor interrupts.
        (unknown, false, Verdict::Failure),
        (warning, true, Verdict::Success),
        (Answer::Success, false, Verdict::Success),
        (failure(), false, Verdict::Success),
        (failure(), false, Verdict::Success),
        (Answer::Success, false, Verdict::Success),
        (failure(), false, Verdict::Success),
        (failure(), false, Verdict::Success),
        (failure(), true, Verdict::Failure),
        (failure(), false, Verdict::Failure),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(worker.answered("a", &answer), changed, "{number}");
        assert_eq!(worker.verdict("a"), Some(verdict), "{number}");
    }
}

#[test]
fn what_fails_to_live_is_not_looked_at_until_there_is_another_container() {
    let mut worker = worker(Kind::Liveness, json!({ "failureThreshold": 2 }));
    worker.look(&running("a", 1, true), at(2));
    assert!(!worker.answered("a", &failure()));
    assert!(worker.answered("a", &failure()));
    assert_eq!(worker.look(&running("a", 1, true), at(30)), Step::Wait);
    assert!(!worker.answered("a", &Answer::Success), "an answer that comes late does not count");
    assert_eq!(worker.verdict("a"), Some(Verdict::Failure));

    assert_eq!(worker.look(&running("b", 31, true), at(32)), Step::Probe);
    assert_eq!(worker.verdict("b"), Some(Verdict::Success));
    assert_eq!(worker.verdict("a"), None);
    assert!(!worker.answered("a", &failure()), "it is about another container");
    assert!(!worker.answered("b", &failure()));
    assert!(worker.answered("b", &failure()));
}

#[test]
fn a_startup_probe_is_done_either_way() {
    for (answer, verdict) in [(Answer::Success, Verdict::Success), (failure(), Verdict::Failure)] {
        let mut worker = worker(Kind::Startup, json!({ "failureThreshold": 1 }));
        assert_eq!(worker.look(&running("a", 1, false), at(2)), Step::Probe);
        assert!(worker.answered("a", &answer));
        assert_eq!(worker.verdict("a"), Some(verdict));
        assert_eq!(worker.look(&running("a", 1, false), at(12)), Step::Wait);
    }
}

#[test]
fn a_worker_ends_with_its_pod() {
    let over = Observed { over: true, ..running("a", 1, true) };
    let deleting = Observed { deleting: true, ..running("a", 1, true) };
    let ended = |restarts| Observed {
        container: Some(("a", Phase::Ended { restarts })),
        ..running("a", 1, true)
    };
    for (kind, observed, step, verdict) in [
        (Kind::Readiness, over, Step::Stop, None),
        (Kind::Readiness, ended(true), Step::Wait, Some(Verdict::Failure)),
        (Kind::Liveness, ended(false), Step::Stop, Some(Verdict::Failure)),
        // Nobody restarts what is to end; whether it is ready still matters.
        (Kind::Liveness, deleting, Step::Stop, Some(Verdict::Success)),
        (Kind::Readiness, deleting, Step::Probe, Some(Verdict::Failure)),
    ] {
        let mut worker = worker(kind, json!({}));
        assert_eq!(worker.look(&observed, at(2)), step, "{kind} {observed:?}");
        assert_eq!(worker.verdict("a"), verdict, "{kind} {observed:?}");
    }
}

#[test]
fn an_agent_that_was_restarted_believes_what_was_said_before() {
    let container: Container = from_value(json!({
        "name": "main", "startupProbe": {}, "livenessProbe": {}, "readinessProbe": {},
    }))
    .unwrap();
    let look = |since: i64, started: bool| {
        let mut probes = ContainerProbes::of(&container, at(0));
        let all = [&mut probes.startup, &mut probes.liveness, &mut probes.readiness];
        for worker in all.into_iter().flatten() {
            worker.look(&running("a", since, started), at(1));
        }
        probes
    };
    let old = look(-60, true);
    assert!(old.started("a", Some(true)));
    assert!(old.ready("a", true) && !old.ready("a", false));
    assert_eq!(old.failed("a"), None);
    let unstarted = look(-60, false);
    assert!(!unstarted.started("a", Some(false)));
    let new = look(-5, false);
    assert!(!new.started("a", Some(true)) && !new.ready("a", true));

    let unprobed = ContainerProbes::default();
    assert!(unprobed.started("a", None) && unprobed.ready("a", false));
    assert_eq!(unprobed.failed("a"), None);
}

#[test]
fn a_container_is_stopped_when_it_does_not_live_or_start() {
    let container: Container = from_value(json!({
        "name": "main",
        "startupProbe": { "failureThreshold": 1 },
        "livenessProbe": { "failureThreshold": 1 },
    }))
    .unwrap();
    for (kind, message) in [
        (Kind::Startup, "Container main failed startup probe, will be restarted"),
        (Kind::Liveness, "Container main failed liveness probe, will be restarted"),
    ] {
        let mut probes = ContainerProbes::of(&container, at(0));
        let worker = match kind {
            Kind::Startup => probes.startup.as_mut(),
            _ => probes.liveness.as_mut(),
        };
        let worker = worker.unwrap();
        worker.look(&running("a", 1, kind == Kind::Liveness), at(2));
        worker.answered("a", &failure());
        assert_eq!(probes.failed("a"), Some(kind));
        assert_eq!(probes.failed("b"), None);
        assert_eq!(ContainerProbes::killing("main", kind, true), message);
    }
    let ends = ContainerProbes::killing("main", Kind::Liveness, false);
    assert_eq!(ends, "Container main failed liveness probe");
}

#[test]
fn people_are_told_what_a_probe_saw() {
    let text = || "why".to_owned();
    for (answer, expected) in [
        (Answer::Success, None),
        (Answer::Failure(text()), Some("Unhealthy: Liveness probe failed: why")),
        (Answer::Warning(text()), Some("ProbeWarning: Liveness probe warning: why")),
        (
            Answer::Unknown(text()),
            Some("Unhealthy: Liveness probe errored and resulted in unknown state: why"),
        ),
        (
            Answer::Broken(text()),
            Some("Unhealthy: Liveness probe errored and resulted in failure state: why"),
        ),
    ] {
        let event = answer.event(Kind::Liveness);
        let told = event.map(|event| format!("{}: {}", event.reason, event.message));
        assert_eq!(told.as_deref(), expected);
    }
}

/// Runs commands as they are called.
#[derive(Default)]
struct Commands {
    run: Mutex<Vec<String>>,
}

impl Exec for Commands {
    async fn exec(
        &self,
        id: &str,
        command: &[String],
        _: Duration,
    ) -> Result<ExecOutput, ExecError> {
        self.run.lock().unwrap().push(format!("{id}: {}", command.join(" ")));
        match command[0].as_str() {
            "true" => Ok(ExecOutput { code: 0, output: b"fine".to_vec() }),
            "false" => Ok(ExecOutput { code: 1, output: b"not fine".to_vec() }),
            "long" => Ok(ExecOutput { code: 1, output: vec![b'x'; 20_000] }),
            "slow" => Err(ExecError::TimedOut),
            _ => Err(ExecError::Failed("no such container".into())),
        }
    }
}

/// Looks once at something on this machine.
async fn look(action: Value, commands: &Commands) -> Answer {
    let mut action = action;
    // Long enough for the slowest machine.
    if action.get("timeoutSeconds").is_none() {
        action["timeoutSeconds"] = json!(300);
    }
    let action: Probe = from_value(action).unwrap();
    let container: Container = from_value(json!({
        "name": "main",
        "env": [{ "name": "A", "value": "1" }],
        "ports": [{ "name": "web", "containerPort": 1 }],
    }))
    .unwrap();
    let target = Target { container: &container, id: "c-1", pod_ip: "127.0.0.1", pod: "p_shop(u)" };
    probe(&action, target, commands).await
}

#[tokio::test]
async fn a_command_tells_by_its_code() {
    let failed = |why: &str| Answer::Failure(why.into());
    for (command, expected, times) in [
        (vec!["true", "$(A)", "$(B)"], Answer::Success, 1),
        (vec!["false"], failed("not fine"), 1),
        (vec!["slow", "x"], failed("command timed out: \"slow x\" timed out after 1m5s"), 1),
        // What goes wrong itself is tried thrice.
        (vec!["broken"], Answer::Unknown("no such container".into()), 3),
    ] {
        let commands = Commands::default();
        let action = json!({ "exec": { "command": command }, "timeoutSeconds": 65 });
        assert_eq!(look(action, &commands).await, expected);
        assert_eq!(commands.run.lock().unwrap().len(), times);
    }
    let commands = Commands::default();
    look(json!({ "exec": { "command": ["true", "$(A)", "$(B)"] } }), &commands).await;
    assert_eq!(*commands.run.lock().unwrap(), ["c-1: true 1 $(B)"]);
    let long = look(json!({ "exec": { "command": ["long"] } }), &commands).await;
    assert_eq!(long, failed(&"x".repeat(10 << 10)));
    let nothing = look(json!({}), &commands).await;
    assert_eq!(nothing, Answer::Unknown("missing probe handler for p_shop(u):main".into()));
}

#[tokio::test]
async fn a_port_is_a_number_or_a_name() {
    let commands = Commands::default();
    for (port, expected) in [
        (json!(0), "invalid port number: 0"),
        (json!(70_000), "invalid port number: 70000"),
        (json!("tea"), "strconv.Atoi: parsing \"tea\": invalid syntax"),
    ] {
        let found = look(json!({ "tcpSocket": { "port": port } }), &commands).await;
        assert_eq!(found, Answer::Unknown(expected.into()));
    }
    // Nobody listens on port 1, which is what the container calls `web`.
    for port in [json!("web"), json!("1"), json!(1)] {
        let found = look(json!({ "tcpSocket": { "port": port } }), &commands).await;
        let refused = "dial tcp 127.0.0.1:1: connect: connection refused";
        assert_eq!(found, Answer::Failure(refused.into()));
    }
}

#[tokio::test]
async fn a_socket_that_accepts_is_enough() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let action = json!({ "tcpSocket": { "port": port, "host": "127.0.0.1" } });
    assert_eq!(look(action, &Commands::default()).await, Answer::Success);
    assert_eq!(tcp::joined("fd00::1", 80), "[fd00::1]:80");
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_does_not_answer_in_time_is_a_failure() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    // Nobody accepts it, so there is no room for another.
    let _first = TcpStream::connect(address).await.unwrap();
    let action = json!({ "tcpSocket": { "port": address.port() }, "timeoutSeconds": 1 });
    let found = look(action, &Commands::default()).await;
    assert_eq!(found, Answer::Failure(format!("dial tcp {address}: i/o timeout")));
}

/// Answers one request by its path, and notes what was asked.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, asked: &Mutex<Vec<String>>) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read_exact(&mut byte).await.is_err() {
            return;
        }
        request.push(byte[0]);
    }
    let request = String::from_utf8(request).unwrap();
    let path = request.split(' ').nth(1).unwrap().to_owned();
    asked.lock().unwrap().push(request);
    let found = |to: &str| format!("302 Found\r\nLocation: {to}");
    let head = match path.as_str() {
        "/ok?a=b" | "/folder/ok" => "200 OK".to_owned(),
        "/edge" => "399 Edge".to_owned(),
        "/unmodified" => "304 Not Modified".to_owned(),
        "/broken" => "500 Internal Server Error".to_owned(),
        "/bad" => "400 Bad Request".to_owned(),
        "/away" => found("http://example.com/"),
        "/nowhere" => "301 Moved Permanently".to_owned(),
        "/folder/relative" => found("ok"),
        "/absolute" => found("/folder/ok"),
        "/around" => found("/around"),
        "/silent" => return,
        _ => "404 Not Found".to_owned(),
    };
    let body = if head.starts_with("304") { "" } else { "hello" };
    let length = body.len();
    let reply = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n{body}");
    let _ = stream.write_all(reply.as_bytes()).await;
}

async fn web_server(tls: Option<TlsAcceptor>) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            match &tls {
                Some(tls) => answer(tls.accept(stream).await.unwrap(), &noted).await,
                None => answer(stream, &noted).await,
            }
        }
    });
    (address, asked)
}

#[tokio::test]
async fn a_page_from_200_to_399_is_enough() {
    let (address, _) = web_server(None).await;
    let (commands, port) = (Commands::default(), address.port());
    let failed = |why: String| Answer::Failure(why);
    let ended =
        |body: &str| Answer::Warning(format!("Probe terminated redirects, Response body: {body}"));
    let get = |path: &str, why: &str| format!("Get \"http://127.0.0.1:{port}{path}\": {why}");
    for (path, expected) in [
        ("/ok?a=b", Answer::Success),
        ("/edge", ended("hello")),
        ("/unmodified", ended("")),
        ("/bad", failed("HTTP probe failed with statuscode: 400".into())),
        ("/broken", failed("HTTP probe failed with statuscode: 500".into())),
        ("/tea", failed("HTTP probe failed with statuscode: 404".into())),
        // Redirects are followed on the same host only.
        ("/absolute", Answer::Success),
        ("/folder/relative", Answer::Success),
        ("/away", ended("hello")),
        ("/around", failed(get("/around", "stopped after 10 redirects"))),
        ("/nowhere", failed(get("/nowhere", "301 response missing Location header"))),
        ("/silent", failed(get("/silent", "EOF"))),
    ] {
        let action = json!({ "httpGet": { "port": port, "path": path } });
        assert_eq!(look(action, &commands).await, expected, "{path}");
    }
    let refused = look(json!({ "httpGet": { "port": 1, "path": "/" } }), &commands).await;
    let why = "Get \"http://127.0.0.1:1/\": dial tcp 127.0.0.1:1: connect: connection refused";
    assert_eq!(refused, failed(why.into()));
}

#[tokio::test(start_paused = true)]
async fn a_page_that_does_not_come_in_time_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let action = json!({ "httpGet": { "port": port, "path": "/" }, "timeoutSeconds": 1 });
    let found = look(action, &Commands::default()).await;
    let why = format!(
        "Get \"http://127.0.0.1:{port}/\": context deadline exceeded (Client.Timeout exceeded \
         while awaiting headers)"
    );
    assert_eq!(found, Answer::Failure(why));
}

#[tokio::test]
async fn a_probe_says_who_it_is_unless_the_pod_says_it() {
    let (address, asked) = web_server(None).await;
    let (commands, port) = (Commands::default(), address.port());
    let header = |name: &str, value: &str| json!({ "name": name, "value": value });
    let get = |headers: Value| json!({ "httpGet": { "port": port, "path": "/ok?a=b", "httpHeaders": headers } });
    look(get(json!([])), &commands).await;
    let own = [
        header("Host", "shop.example"),
        header("Accept", ""),
        header("User-Agent", "me"),
        header("X-Twice", "1"),
        header("X-Twice", "2"),
    ];
    look(get(json!(own)), &commands).await;
    let asked = asked.lock().unwrap();
    let lines = |number: usize| {
        let text: &String = &asked[number];
        let mut lines: Vec<String> = text.lines().skip(1).map(str::to_lowercase).collect();
        lines.retain(|line| !line.is_empty());
        lines.sort();
        lines
    };
    let host = format!("host: 127.0.0.1:{port}");
    assert_eq!(
        lines(0),
        ["accept: */*", "connection: close", &host, "user-agent: kube-probe/1.36"]
    );
    assert_eq!(
        lines(1),
        ["connection: close", "host: shop.example", "user-agent: me", "x-twice: 1", "x-twice: 2"]
    );
}

#[tokio::test]
async fn any_certificate_is_good_enough() {
    let certified = rcgen::generate_simple_self_signed(["elsewhere.example".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key.unwrap())
        .unwrap();
    let (address, _) = web_server(Some(TlsAcceptor::from(Arc::new(config)))).await;
    let action =
        json!({ "httpGet": { "scheme": "HTTPS", "port": address.port(), "path": "/ok?a=b" } });
    assert_eq!(look(action, &Commands::default()).await, Answer::Success);
}

/// Tells the health of the service that it is asked for.
async fn health(
    request: Request<Incoming>,
) -> Result<Response<impl http_body::Body<Data = Bytes, Error = Infallible>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let service = HealthCheckRequest::decode(&body[5..]).unwrap().service;
    let (status, code, message) = match service.as_str() {
        "" | "good" => (ServingStatus::Serving, "0", ""),
        "bad" => (ServingStatus::NotServing, "0", ""),
        "new" => (ServingStatus::Unknown, "0", ""),
        "lacking" => (ServingStatus::Unknown, "12", "unknown method Check"),
        _ => (ServingStatus::Unknown, "5", "unknown service"),
    };
    let answer = HealthCheckResponse { status: status.into() }.encode_to_vec();
    let mut framed = BytesMut::new();
    if code == "0" {
        framed.put_u8(0);
        framed.put_u32(u32::try_from(answer.len()).unwrap());
        framed.put_slice(&answer);
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(code));
    trailers.insert("grpc-message", HeaderValue::from_static(message));
    let body = Full::new(framed.freeze()).with_trailers(async move { Some(Ok(trailers)) });
    let response = Response::builder().header("content-type", "application/grpc");
    Ok(response.body(body).unwrap())
}

#[tokio::test]
async fn a_server_is_asked_for_the_health_of_a_service() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let connection = http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service_fn(health));
            tokio::spawn(connection);
        }
    });
    let failed = |why: &str| Answer::Failure(why.into());
    for (service, expected) in [
        ("", Answer::Success),
        ("good", Answer::Success),
        ("bad", failed("service unhealthy (responded with \"NOT_SERVING\")")),
        ("new", failed("service unhealthy (responded with \"UNKNOWN\")")),
        (
            "lacking",
            failed(
                "error: this server does not implement the grpc health protocol \
                 (grpc.health.v1.Health): unknown method Check",
            ),
        ),
        (
            "tea",
            failed(
                "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service",
            ),
        ),
    ] {
        let action = json!({ "grpc": { "port": port, "service": service } });
        assert_eq!(look(action, &Commands::default()).await, expected, "{service}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_is_waited_for_as_long_as_the_probe_has() {
    let action = json!({ "grpc": { "port": 1 }, "timeoutSeconds": 90 });
    let found = look(action, &Commands::default()).await;
    let why = "timeout: failed to connect service \"127.0.0.1:1\" within 1m30s: context deadline \
               exceeded";
    assert_eq!(found, Answer::Failure(why.into()));
}
