//! Encodes server-sent events.

/// Content type of an event stream.
pub(crate) const CONTENT_TYPE: &str = "text/event-stream";

/// An event with this data, and an id if the stream can be resumed.
pub(crate) fn event(data: &[u8], id: Option<&str>) -> Vec<u8> {
    let mut event = id
        .map(|id| format!("id: {id}\n"))
        .unwrap_or_default()
        .into_bytes();
    event.extend_from_slice(b"event: message\n");
    for line in data.split(|byte| *byte == b'\n') {
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(line);
        event.push(b'\n');
    }
    event.push(b'\n');
    event
}

/// The first event of a resumable stream.
pub(crate) fn priming(id: &str, retry_ms: u64) -> Vec<u8> {
    format!("id: {id}\nretry: {retry_ms}\ndata: \n\n").into_bytes()
}

/// The first event of the legacy transport, which names its endpoint.
pub(crate) fn endpoint(path: &str) -> Vec<u8> {
    format!("event: endpoint\ndata: {path}\n\n").into_bytes()
}
