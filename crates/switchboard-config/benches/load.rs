//! Benchmark: loading and resolving 10,000 servers, compared with only parsing the file.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use switchboard_config::files::{Folders, InMemory};
use switchboard_config::resolve::{Config, Inputs};

const SERVERS: usize = 10_000;

fn json() -> String {
    let entry = |index: usize| {
        format!(
            "  \"server-{index}\": {{\n    \"command\": \"npx\",\n    \"args\": [\"-y\", \"@scope/server-{index}\", \"/data/{index}\"],\n    \
             \"env\": {{ \"TOKEN\": \"${{TOKEN_{}:-none}}\", \"MODE\": \"fast\" }},\n    \"enabled\": true\n  }}",
            index % 10
        )
    };
    let entries: Vec<String> = (0..SERVERS).map(entry).collect();
    format!("{{\"mcpServers\": {{\n{}\n}}}}\n", entries.join(",\n"))
}

fn toml() -> String {
    let entry = |index: usize| {
        format!(
            "[mcp_servers.server-{index}]\ncommand = \"npx\"\nargs = [\"-y\", \"@scope/server-{index}\", \"/data/{index}\"]\n\
             env = {{ TOKEN = \"${{TOKEN_{}:-none}}\", MODE = \"fast\" }}\nenabled = true\n",
            index % 10
        )
    };
    (0..SERVERS).map(entry).collect()
}

fn hcl() -> String {
    let entry = |index: usize| {
        format!(
            "mcp_servers \"server-{index}\" {{\n  command = \"npx\"\n  args = [\"-y\", \"@scope/server-{index}\", \"/data/{index}\"]\n  \
             env = {{ TOKEN = env(\"HOME\"), MODE = \"fast\" }}\n  enabled = true\n}}\n"
        )
    };
    (0..SERVERS).map(entry).collect()
}

fn load(file: &str, text: &str) -> impl Fn() -> Config {
    let inputs = Inputs {
        folders: Folders {
            home: "/h".into(),
            config: "/c".into(),
            state: "/s".into(),
            project: "/p".into(),
            managed_file: None,
        },
        environment: [("TOKEN_3", "three"), ("HOME", "/h"), ("PATH", "/usr/bin")]
            .into_iter()
            .collect(),
        ..Inputs::default()
    };
    let files = InMemory::default().file(file, text).program("/usr/bin/npx");
    let load = move || Config::load(&inputs, &files);
    let config = load();
    assert_eq!(config.servers.len(), SERVERS);
    assert!(!config.has_errors());
    load
}

fn benchmark(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("config");
    group.sample_size(20);
    let (json, toml, hcl) = (json(), toml(), hcl());
    group.bench_function("json/bare", |bencher| {
        bencher.iter(|| serde_json::from_str::<serde_json::Value>(black_box(&json)).ok());
    });
    group.bench_function("json/load", |bencher| {
        bencher.iter(load("/c/mcp.json", &json));
    });
    group.bench_function("json/load-project", |bencher| {
        bencher.iter(load("/p/.mcp.json", &json));
    });
    group.bench_function("toml/bare", |bencher| {
        bencher.iter(|| black_box(&toml).parse::<toml::Table>().ok());
    });
    group.bench_function("toml/load", |bencher| {
        bencher.iter(load("/c/mcp.toml", &toml));
    });
    group.bench_function("hcl/bare", |bencher| {
        bencher.iter(|| black_box(&hcl).parse::<hcl_edit::structure::Body>().ok());
    });
    group.bench_function("hcl/load", |bencher| bencher.iter(load("/c/mcp.hcl", &hcl)));
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
