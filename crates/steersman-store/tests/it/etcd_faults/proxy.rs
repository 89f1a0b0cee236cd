//! A way to etcd that can be cut, or go silent, while etcd itself goes on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Open,
    /// Answers come back slowly.
    Slow,
    /// Connections stay, and nothing passes.
    Silent,
    /// What is said arrives, and no answer comes back.
    Mute,
    /// Connections end, and new ones with them.
    Cut,
}

/// Listens in place of a member.
pub(super) struct Proxy {
    pub(super) endpoint: String,
    way: Arc<watch::Sender<Way>>,
    task: AbortHandle,
}

impl Proxy {
    pub(super) async fn to(endpoint: &str) -> Self {
        let target: SocketAddr = endpoint.trim_start_matches("http://").parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let way = Arc::new(watch::channel(Way::Open).0);
        let ways = Arc::clone(&way);
        let task = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(pass(client, target, ways.subscribe()));
            }
        });
        Self { endpoint, way, task: task.abort_handle() }
    }

    pub(super) fn cut(&self) {
        self.way.send_replace(Way::Cut);
    }

    pub(super) fn silence(&self) {
        self.way.send_replace(Way::Silent);
    }

    pub(super) fn mute(&self) {
        self.way.send_replace(Way::Mute);
    }

    pub(super) fn slow(&self) {
        self.way.send_replace(Way::Slow);
    }

    pub(super) fn mend(&self) {
        self.way.send_replace(Way::Open);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Passes on what comes, two megabytes a second.
async fn trickle(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    let mut ticks = tokio::time::interval(Duration::from_millis(16));
    let mut buffer = vec![0; 32 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        ticks.tick().await;
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// One connection. What went silent stays so until the way is another one.
async fn pass(mut client: TcpStream, target: SocketAddr, mut way: watch::Receiver<Way>) {
    if *way.borrow() == Way::Open {
        let Ok(mut server) = TcpStream::connect(target).await else { return };
        tokio::select! {
            _ = copy_bidirectional(&mut client, &mut server) => return,
            _ = way.wait_for(|way| *way != Way::Open) => {}
        }
        if *way.borrow() == Way::Mute {
            let (mut said, mut heard) = (client.split().0, server.split().1);
            tokio::select! {
                _ = copy(&mut said, &mut heard) => {}
                _ = way.wait_for(|way| *way != Way::Mute) => {}
            }
        }
    }
    if *way.borrow() == Way::Slow {
        let Ok(mut server) = TcpStream::connect(target).await else { return };
        let ((mut said, answers), (come, mut heard)) = (client.split(), server.split());
        tokio::select! {
            _ = copy(&mut said, &mut heard) => {}
            () = trickle(come, answers) => {}
            _ = way.wait_for(|way| *way != Way::Slow) => {}
        }
        return;
    }
    let _ = way.wait_for(|way| matches!(way, Way::Open | Way::Slow | Way::Cut)).await;
}
