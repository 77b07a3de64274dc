//! The stdio front end over in-process pipes.

use std::sync::Arc;
use std::time::Duration;

use switchboard_server::ServiceHandler;
use switchboard_server::stdio::{Ended, StdioError, StdioOptions, serve};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, duplex};
use tokio::task::JoinHandle;

use crate::bench::{Bench, soon, tasks, wait_until};

const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

struct Client {
    bench: Arc<Bench>,
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    serving: JoinHandle<Result<Ended, StdioError>>,
}

impl Client {
    fn new() -> Self {
        Self::with(StdioOptions::default(), 64 * 1024)
    }

    /// A client whose pipes buffer this many bytes.
    fn with(options: StdioOptions, pipe: usize) -> Self {
        let bench = Arc::new(Bench::default());
        let (input, reader) = duplex(pipe);
        let (writer, output) = duplex(pipe);
        let handler = ServiceHandler::new(bench.clone());
        let serving = tokio::spawn(async move { serve(&handler, reader, writer, &options).await });
        Self {
            bench,
            input,
            output: BufReader::new(output).lines(),
            serving,
        }
    }

    async fn greeted() -> Self {
        let mut client = Self::new();
        client.greet().await;
        client
    }

    async fn greet(&mut self) {
        self.say(r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}"#)
            .await;
        assert!(self.line().await.contains("protocolVersion"));
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
    }

    async fn say(&mut self, line: &str) {
        self.bytes(format!("{line}\n").as_bytes()).await;
    }

    async fn bytes(&mut self, bytes: &[u8]) {
        soon(self.input.write_all(bytes)).await.unwrap();
    }

    async fn call(&mut self, id: u64, tool: &str, arguments: &str) {
        self.say(&call(id, tool, arguments)).await;
    }

    async fn line(&mut self) -> String {
        soon(self.output.next_line()).await.unwrap().unwrap()
    }

    async fn end(self) -> Ended {
        drop(self.input);
        soon(self.serving).await.unwrap().unwrap()
    }
}

fn call(id: u64, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

fn text(id: u64, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

#[tokio::test]
async fn a_long_call_blocks_nothing() {
    let mut client = Client::greeted().await;
    client.call(1, "wait", "{}").await;
    client.call(2, "echo", r#"{"text":"quick"}"#).await;
    client
        .say(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#)
        .await;
    assert_eq!(client.line().await, text(2, "quick"));
    assert_eq!(
        client.line().await,
        r#"{"jsonrpc":"2.0","id":3,"result":{}}"#
    );
    client.bench.go.notify_one();
    assert_eq!(client.line().await, text(1, "waited"));
    assert_eq!(client.end().await, Ended::Input);
}

#[tokio::test]
async fn both_eras_are_served_on_one_pipe() {
    let mut client = Client::new();
    client
        .say(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{MODERN}}}}}"#
        ))
        .await;
    assert!(
        client
            .line()
            .await
            .contains(r#""supportedVersions":["2024-11-05""#)
    );
    client.greet().await;
    client.call(2, "echo", r#"{"text":"old"}"#).await;
    assert_eq!(client.line().await, text(2, "old"));
    client
        .say(&format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"new"}},{MODERN}}}}}"#
        ))
        .await;
    assert!(client.line().await.contains(r#""resultType":"complete""#));
    client.end().await;
}

#[tokio::test]
async fn an_invalid_line_is_answered_with_an_error_and_skipped() {
    // The id is omitted if it cannot be recovered.
    let error = |id: &str, code: i32, message: &str| {
        let id = match id {
            "" => String::new(),
            id => format!(r#""id":{id},"#),
        };
        Some(format!(
            r#"{{"jsonrpc":"2.0",{id}"error":{{"code":{code},"message":"{message}"}}}}"#
        ))
    };
    let options = {
        let mut options = StdioOptions::default();
        options.max_line_bytes = 1_000;
        options
    };
    let mut client = Client::with(options, 64 * 1024);
    client.greet().await;
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"x":"{}"}}}}"#,
        "y".repeat(5_000)
    );
    let table: [(&[u8], Option<String>); 17] = [
        (b"[]", error("", -32600, "empty batch")),
        (b"17", error("", -32600, "a message must be a JSON object")),
        (b"{}", error("", -32600, "neither a request nor a response")),
        (b"", None),
        (b"  \r", None),
        (br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, None),
        (
            br#"{"jsonrpc":"2.0","id":22}"#,
            error(
                "22",
                -32600,
                "a response with neither a result nor an error",
            ),
        ),
        (
            br#"{"jsonrpc":"1.0","id":23,"method":"ping"}"#,
            error("23", -32600, r#"jsonrpc must be \"2.0\""#),
        ),
        (
            br#"{"id":24,"method":"ping"}"#,
            error("24", -32600, r#"jsonrpc must be \"2.0\""#),
        ),
        (br#"{"method":"notifications/nothing"}"#, None),
        (
            br#"{"jsonrpc":"1.0","method":"notifications/nothing"}"#,
            None,
        ),
        (
            br#"{"jsonrpc":"2.0","method":"notifications/nothing"}"#,
            None,
        ),
        (
            br#"{"jsonrpc":"2.0","id":2,"method":"nothing/here"}"#,
            error("2", -32601, "method not found: nothing/here"),
        ),
        (
            br#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"none"}}"#,
            error("3", -32602, "unknown tool: none"),
        ),
        (
            br#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"panic"}}"#,
            error("4", -32603, "the server failed unexpectedly"),
        ),
        (
            br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            error("", -32600, "the id is neither a string nor a number"),
        ),
        (
            long.as_bytes(),
            error("7", -32600, "the message is longer than 1000 bytes"),
        ),
    ];
    for (line, expected) in table {
        client.bytes(line).await;
        client.bytes(b"\n").await;
        if let Some(expected) = expected {
            assert_eq!(client.line().await, expected);
        }
    }
    for unreadable in [
        &b"garbage"[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",",
        b"\xff\xfe",
    ] {
        client.bytes(unreadable).await;
        client.bytes(b"\n").await;
        let answer = client.line().await;
        assert!(answer.contains(r#""code":-32700"#), "{answer}");
    }
    client.call(9, "echo", r#"{"text":"still here"}"#).await;
    assert_eq!(client.line().await, text(9, "still here"));
    client.end().await;
}

#[tokio::test]
async fn a_batch_is_answered_by_a_batch_once_all_of_it_is_done() {
    let mut client = Client::greeted().await;
    let wait = call(1, "wait", "{}");
    let echo = call(2, "echo", r#"{"text":"second"}"#);
    client
        .say(&format!(
            r#" [{wait}, {echo}, {{"jsonrpc":"2.0","method":"notifications/nothing"}}, 5]"#
        ))
        .await;
    // A batch of notifications gets no answer.
    client
        .say(r#"[{"jsonrpc":"2.0","method":"notifications/nothing"}]"#)
        .await;
    client.call(3, "echo", r#"{"text":"between"}"#).await;
    assert_eq!(client.line().await, text(3, "between"));
    client.bench.go.notify_one();
    let refused =
        r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"a message must be a JSON object"}}"#;
    let expected = format!("[{},{refused},{}]", text(2, "second"), text(1, "waited"));
    assert_eq!(client.line().await, expected);
    client.end().await;
}

#[tokio::test]
async fn a_cancelled_call_ends_and_is_not_answered() {
    let mut client = Client::greeted().await;
    client.call(1, "wait", "{}").await;
    client.bench.begun.reaches(1).await;
    client
        .say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    client.bench.ended.reaches(1).await;
    client.call(2, "echo", r#"{"text":"next"}"#).await;
    assert_eq!(client.line().await, text(2, "next"));
    client.end().await;
}

#[tokio::test]
async fn the_client_is_asked_in_mid_call() {
    let mut client = Client::greeted().await;
    client.call(1, "ask", "{}").await;
    assert_eq!(
        client.line().await,
        r#"{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"properties":{},"type":"object"}}}"#
    );
    client
        .say(r#"{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}"#)
        .await;
    assert_eq!(client.line().await, text(1, "accept"));
    client.end().await;
}

/// Requests of a client that does not read are queued; its cancellations are not.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_blocks_only_itself() {
    const CALLS: u64 = 2_000;
    let mut options = StdioOptions::default();
    options.max_queued_bytes = 50_000;
    let mut client = Client::with(options, 1_000);
    client.greet().await;
    client.call(1, "wait", "{}").await;
    client.bench.begun.reaches(1).await;
    // Enough to fill the pipe and the queue, and to leave some waiting.
    for id in 2..=40 {
        client.call(id, "big", r#"{"bytes":5000}"#).await;
    }
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    client.say(cancel).await;
    client.bench.ended.reaches(client.bench.begun.now()).await;
    let begun = client.bench.begun.now();
    assert!((10..30).contains(&begun), "{begun} calls have started");
    // A queued request is cancelled before it starts.
    client
        .say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":40}}"#)
        .await;
    // No further request is started or read, however many it sends.
    let Client {
        bench,
        mut input,
        mut output,
        serving,
    } = client;
    let sent = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let sending = tokio::spawn({
        let sent = Arc::clone(&sent);
        async move {
            for id in 41..CALLS {
                let line = format!("{}\n", call(id, "big", r#"{"bytes":5000}"#));
                input.write_all(line.as_bytes()).await.unwrap();
                sent.store(id, std::sync::atomic::Ordering::Relaxed);
            }
            input
        }
    });
    let mut last = 0;
    loop {
        // The paused clock advances only when all tasks are idle.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = sent.load(std::sync::atomic::Ordering::Relaxed);
        if now == last {
            break;
        }
        last = now;
    }
    assert!(last < 1_000, "{last} were read");
    assert_eq!(bench.begun.now(), begun);
    // Once the client reads, it gets all answers in order.
    for id in (2..CALLS).filter(|id| *id != 40) {
        let line = soon(output.next_line()).await.unwrap().unwrap();
        assert_eq!(line, text(id, &"x".repeat(5_000)));
    }
    drop(soon(sending).await.unwrap());
    assert_eq!(soon(serving).await.unwrap().unwrap(), Ended::Input);
}

/// Queued requests are parsed with the limits of the front end, so one longer than the default limit can be cancelled
/// too.
#[tokio::test]
async fn a_long_queued_request_can_be_cancelled() {
    const MIB: usize = 1024 * 1024;
    let mut options = StdioOptions::default();
    options.max_line_bytes = 32 * MIB;
    options.max_queued_bytes = 18 * MIB;
    let mut client = Client::with(options, 64 * 1024);
    client.greet().await;
    // One answer is being written; the other fills the queue.
    let bytes = 19 * MIB;
    for id in [1, 2] {
        client
            .call(id, "big", &format!(r#"{{"bytes":{bytes}}}"#))
            .await;
    }
    client.bench.ended.reaches(2).await;
    let padding = "x".repeat(17 * MIB);
    client
        .call(3, "big", &format!(r#"{{"bytes":1,"text":"{padding}"}}"#))
        .await;
    client
        .say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#)
        .await;
    client.call(4, "big", r#"{"bytes":3}"#).await;
    for id in [1, 2] {
        assert_eq!(client.line().await, text(id, &"x".repeat(bytes)));
    }
    assert_eq!(client.line().await, text(4, "xxx"));
    assert_eq!(client.bench.begun.now(), 3);
    assert_eq!(client.end().await, Ended::Input);
}

#[tokio::test]
async fn reports_are_left_out_for_a_client_that_does_not_read() {
    let mut options = StdioOptions::default();
    options.max_queued_bytes = 50_000;
    let mut client = Client::with(options, 1_000);
    client.greet().await;
    client
        .say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"flood","arguments":{"count":10000,"bytes":1000},"_meta":{"progressToken":1}}}"#)
        .await;
    client.bench.ended.reaches(1).await;
    let mut reports = 0;
    let answer = loop {
        let line = client.line().await;
        if !line.contains("notifications/progress") {
            break line;
        }
        reports += 1;
    };
    assert_eq!(answer, text(1, "flooded"));
    assert!((10..200).contains(&reports), "{reports} reports");
    client.end().await;
}

#[tokio::test]
async fn the_end_of_the_input_cancels_what_runs_and_writes_what_is_queued() {
    let before = tasks();
    let mut client = Client::greeted().await;
    client.call(1, "wait", "{}").await;
    client.bench.begun.reaches(1).await;
    // The last line has no newline.
    client
        .bytes(call(2, "echo", r#"{"text":"last"}"#).as_bytes())
        .await;
    let Client {
        bench,
        input,
        mut output,
        serving,
    } = client;
    drop(input);
    assert_eq!(soon(serving).await.unwrap().unwrap(), Ended::Input);
    assert_eq!(output.next_line().await.unwrap(), Some(text(2, "last")));
    assert_eq!(output.next_line().await.unwrap(), None);
    assert_eq!(bench.ended.now(), 2);
    wait_until(|| tasks() <= before).await;
}

#[tokio::test]
async fn a_closed_output_ends_the_client() {
    let mut client = Client::greeted().await;
    client.call(1, "wait", "{}").await;
    client.bench.begun.reaches(1).await;
    let Client {
        bench,
        mut input,
        output,
        serving,
    } = client;
    drop(output);
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n";
    input.write_all(ping).await.unwrap();
    assert_eq!(soon(serving).await.unwrap().unwrap(), Ended::Output);
    bench.ended.reaches(1).await;
}

#[tokio::test]
async fn dropping_the_future_leaves_nothing_behind() {
    let before = tasks();
    let mut client = Client::greeted().await;
    client.call(1, "wait", "{}").await;
    client.bench.begun.reaches(1).await;
    client.serving.abort();
    client.bench.ended.reaches(1).await;
    wait_until(|| tasks() <= before).await;
}
