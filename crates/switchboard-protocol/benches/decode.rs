//! Benchmarks decoding of common messages, compared with rmcp's types on the same bytes.
//!
//! Run with `cargo bench -p switchboard-protocol --bench decode`. Only ratios within one run are meaningful. `cargo
//! xtask bench` reads the estimates by the names of the cases.

#![expect(clippy::panic, reason = "a benchmark fails by panicking")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use serde_json::{json, value::RawValue};
use switchboard_protocol::{
    Incoming, Limits, Message, RequestId, encode,
    limits::depth_exceeded_at,
    parse,
    types::{
        Outcome,
        method::{CallTool, ListTools, Request as _},
    },
};

/// One message and its expected type.
struct Case {
    name: &'static str,
    bytes: Vec<u8>,
    expected: Expected,
}

#[derive(Clone, Copy)]
enum Expected {
    CallResult,
    ToolList { tools: usize },
}

fn cases() -> Vec<Case> {
    let plain = "a plain line of text, as tools return it. ".repeat(25_000);
    let escaped = "a \"quoted\"\tline,\nas tools return it. ".repeat(29_000);
    vec![
        Case {
            name: "small_call_response",
            bytes: text_result("The weather in Oslo is 7 °C, light rain."),
            expected: Expected::CallResult,
        },
        Case {
            name: "thousand_tools",
            bytes: tool_list(1_000),
            expected: Expected::ToolList { tools: 1_000 },
        },
        Case {
            name: "mebibyte_text_plain",
            bytes: text_result(&plain[..1024 * 1024]),
            expected: Expected::CallResult,
        },
        Case {
            name: "mebibyte_text_escaped",
            bytes: text_result(&escaped[..1024 * 1024]),
            expected: Expected::CallResult,
        },
    ]
}

fn text_result(text: &str) -> Vec<u8> {
    let content = json!([{"type": "text", "text": text}]);
    json!({"jsonrpc": "2.0", "id": 42, "result": {"content": content, "isError": false}})
        .to_string()
        .into_bytes()
}

/// A list of tools of about 600 bytes each.
fn tool_list(count: usize) -> Vec<u8> {
    let tools: Vec<_> = (0..count)
        .map(|index| {
            json!({
                "name": format!("search_records_{index}"),
                "title": "Search records",
                "description": "Searches the records of one project by text, by owner and by date, and returns \
                    the matching ones with their identifiers, titles and a short excerpt of the best match.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "project": {"type": "string", "description": "The project to search in"},
                        "query": {"type": "string", "description": "What to look for"},
                        "limit": {"type": "integer", "minimum": 1, "maximum": 100}
                    },
                    "required": ["project", "query"]
                },
                "annotations": {"readOnlyHint": true, "openWorldHint": false}
            })
        })
        .collect();
    json!({"jsonrpc": "2.0", "id": 42, "result": {"tools": tools}})
        .to_string()
        .into_bytes()
}

/// Ours: parses the envelope and decodes the result by its method.
fn decode_ours(case: &Case) -> usize {
    let Ok(Incoming::Single(received)) = parse(&case.bytes, &Limits::DEFAULT) else {
        panic!("{}: unreadable", case.name);
    };
    let Message::Response { id, result } = received.message else {
        panic!("{}: no response", case.name);
    };
    assert_eq!(id.as_u64(), Some(42));
    decode_result(result, case.expected)
}

fn decode_result(result: &RawValue, expected: Expected) -> usize {
    match expected {
        Expected::CallResult => match CallTool::decode_result(result) {
            Ok(Outcome::Complete(result)) => result.content.len(),
            other => panic!("no result of a call: {other:?}"),
        },
        Expected::ToolList { tools } => match ListTools::decode_result(result) {
            Ok(Outcome::Complete(result)) => {
                assert_eq!(result.tools.len(), tools);
                tools
            }
            other => panic!("no list of tools: {other:?}"),
        },
    }
}

fn decode_rmcp(case: &Case) -> usize {
    let Ok(message) = serde_json::from_slice::<ServerJsonRpcMessage>(&case.bytes) else {
        panic!("{}: unreadable to rmcp", case.name);
    };
    let JsonRpcMessage::Response(response) = message else {
        panic!("{}: no response to rmcp", case.name);
    };
    match (response.result, case.expected) {
        (ServerResult::CallToolResult(result), Expected::CallResult) => result.content.len(),
        (ServerResult::ListToolsResult(result), Expected::ToolList { tools }) => {
            assert_eq!(result.tools.len(), tools);
            tools
        }
        _ => panic!("{}: another result to rmcp", case.name),
    }
}

fn decode(criterion: &mut Criterion) {
    for case in cases() {
        let mut group = criterion.benchmark_group(case.name);
        group.throughput(Throughput::Bytes(case.bytes.len() as u64));
        group.bench_function("switchboard", |bencher| {
            bencher.iter(|| decode_ours(black_box(&case)));
        });
        group.bench_function("rmcp", |bencher| {
            bencher.iter(|| decode_rmcp(black_box(&case)));
        });
        group.finish();
    }
}

/// The depth scan alone: the cost of the limit.
fn depth(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("depth_scan");
    for case in cases() {
        group.throughput(Throughput::Bytes(case.bytes.len() as u64));
        group.bench_with_input(
            BenchmarkId::from_parameter(case.name),
            &case,
            |bencher, case| {
                bencher.iter(|| depth_exceeded_at(black_box(&case.bytes), 128));
            },
        );
    }
    group.finish();
}

fn write(criterion: &mut Criterion) {
    let Ok(params) =
        RawValue::from_string(r#"{"name":"get_weather","arguments":{"city":"Oslo"}}"#.to_owned())
    else {
        panic!("no JSON");
    };
    let mut buffer = Vec::with_capacity(1024);
    criterion.bench_function("encode_small_request", |bencher| {
        bencher.iter(|| {
            buffer.clear();
            let written = encode::request(
                &mut buffer,
                &RequestId::from(42),
                "tools/call",
                Some(black_box(&*params)),
            );
            assert!(written.is_ok());
            buffer.len()
        });
    });
}

criterion_group!(benches, decode, depth, write);
criterion_main!(benches);
