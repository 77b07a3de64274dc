//! Ten thousand tools of about 600 bytes: reading the list, putting the catalogue together, finding a tool, and the
//! check of one call's arguments.
//!
//! `cargo bench -p switchboard --bench catalog`. Only ratios within one run mean anything; `typed_decode` is there to be
//! compared with.

#![expect(clippy::expect_used, reason = "a benchmark on wrong data must stop")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{json, value::RawValue};
use switchboard::catalog::{Catalog, Provenance, Tokens};
use switchboard::internal::call::arguments::{ArgumentCheck, Checked};
use switchboard::internal::call::shape::{ShapeOptions, shape};
use switchboard::internal::catalog::impersonation::KnownServers;
use switchboard::internal::catalog::{ListLimits, Reach, ServerTools, ToolRules};
use switchboard::{ServerName, SharedJson, ToolRef, WireName};
use switchboard_protocol::types::{decode, tool::ListToolsResult};

const TOOLS: usize = 10_000;

fn page() -> SharedJson {
    let tools: Vec<_> = (0..TOOLS)
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
    SharedJson::from(&json!({"tools": tools}))
}

fn tools(server: &ServerName, page: &SharedJson) -> ServerTools {
    ServerTools::from_pages(
        server,
        std::slice::from_ref(page),
        &ToolRules::default(),
        Reach::StatelessHttp,
        Provenance::Live,
        ListLimits::default(),
    )
}

fn catalog(criterion: &mut Criterion) {
    let page = page();
    let server = ServerName::from("records");
    let (known, _) = KnownServers::admit([&server]);
    let mut group = criterion.benchmark_group("catalog_10000");
    group.sample_size(30);
    group.bench_function("typed_decode", |bencher| {
        bencher.iter(|| {
            let result: ListToolsResult<'_> = decode(page.raw()).expect("a list");
            result.tools.len()
        });
    });
    group.bench_function("from_pages", |bencher| {
        bencher.iter(|| {
            let built = tools(&server, black_box(&page));
            assert_eq!(built.tools().len(), TOOLS);
            built
        });
    });
    let built = Arc::new(tools(&server, &page));
    let assemble = || Catalog::assemble(&known, [(server.clone(), Arc::clone(&built), None)]);
    group.bench_function("assemble", |bencher| bencher.iter(assemble));
    let catalog = assemble();
    group.bench_function("flags", |bencher| {
        bencher.iter(|| {
            built
                .tools()
                .iter()
                .map(|tool| built.flags(tool).len())
                .sum::<usize>()
        });
    });
    group.bench_function("exposed", |bencher| {
        bencher.iter(|| {
            catalog
                .exposed(black_box("mcp__records__search_records_7777"))
                .is_some()
        });
    });
    group.bench_function("unknown_name", |bencher| {
        bencher.iter(|| catalog.find(black_box("records/serch_records_77")).is_err());
    });
    group.finish();
}

fn calls(criterion: &mut Criterion) {
    let raw = |value: serde_json::Value| RawValue::from_string(value.to_string()).expect("JSON");
    let schema = raw(json!({
        "type": "object",
        "properties": {
            "project": {"type": "string"}, "query": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100}
        },
        "required": ["project", "query"]
    }));
    let check = ArgumentCheck::compile(&schema);
    let arguments = raw(json!({"project": "switchboard", "query": "open issues", "limit": 20}));
    criterion.bench_function("arguments/compile", |bencher| {
        bencher.iter(|| ArgumentCheck::compile(black_box(&schema)));
    });
    criterion.bench_function("arguments/check", |bencher| {
        bencher.iter(|| assert_eq!(check.check(Some(black_box(&arguments))), Ok(Checked::Fit)));
    });
    let tool = ToolRef {
        server: ServerName::from("records"),
        tool: WireName::from("search"),
    };
    let result = SharedJson::from(&json!({"content": [{"type": "text", "text": "seven records"}]}));
    let options = ShapeOptions {
        max_tokens: Tokens(25_000),
        spill: None,
    };
    criterion.bench_function("shape/small", |bencher| {
        bencher.iter(|| shape(&tool, black_box(&result), options).expect("a result"));
    });
}

criterion_group!(benches, catalog, calls);
criterion_main!(benches);
