//! The kinds of trouble there are.

/// One way in which an API server, or the network before it, can fail a client.
///
/// Each is something that servers and networks really do. What none of them does is not here:
/// a watch that goes on never leaves out a single event, and never gives events out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// Any request: nobody answers. The request does not reach the server.
    ConnectionRefused,
    /// Any request: 429 with `Retry-After`. The request does not reach the server.
    TooManyRequests,
    /// Any request: 500 or 503. The request does not reach the server.
    ServerError,
    /// Any request: 403, as after a change of roles. The request does not reach the server.
    Forbidden,
    /// A list or a watch: the connection breaks in the middle of the body.
    ConnectionReset,
    /// A list: the answer arrives half a minute or less after it was true.
    SlowPage,
    /// A list's page after the first: 410, its continue token is too old.
    ContinueExpired,
    /// The start of a watch from a version: 410 as the status of the answer.
    WatchExpired,
    /// A watch: 410 as an ERROR event in place of an event, and the end.
    ExpiredEvent,
    /// A watch: hangs from here on, without an end.
    WatchSilent,
    /// A watch: ends before its time, as if all were well.
    WatchEnded,
    /// A watch: an event comes twice.
    EventTwice,
    /// A watch: half of an event's line comes, and then the end.
    EventCut,
    /// A watch: a bookmark does not come.
    BookmarkMissing,
    /// A list or a watch: an object comes in a form that its type does not allow. The server
    /// has the right one, and the client gets it with the object's next change or the next list.
    Malformed,
    /// A streaming list: 422, as from a server that has the feature turned off.
    StreamingRefused,
    /// A streaming list: taken for a plain watch, as by a server that does not know of them.
    StreamingIgnored,
    /// A streaming list: the bookmark that ends the initial events does not come.
    InitialEventsEndMissing,
}

impl Fault {
    /// Every kind of trouble.
    pub const ALL: [Self; 18] = [
        Self::ConnectionRefused,
        Self::TooManyRequests,
        Self::ServerError,
        Self::Forbidden,
        Self::ConnectionReset,
        Self::SlowPage,
        Self::ContinueExpired,
        Self::WatchExpired,
        Self::ExpiredEvent,
        Self::WatchSilent,
        Self::WatchEnded,
        Self::EventTwice,
        Self::EventCut,
        Self::BookmarkMissing,
        Self::Malformed,
        Self::StreamingRefused,
        Self::StreamingIgnored,
        Self::InitialEventsEndMissing,
    ];
}
