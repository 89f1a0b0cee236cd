//! A way to etcd that can be cut, or go silent, while etcd itself goes on.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Open,
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

    pub(super) fn mend(&self) {
        self.way.send_replace(Way::Open);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
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
    let _ = way.wait_for(|way| matches!(way, Way::Open | Way::Cut)).await;
}
