//! Compares tool search with two search engines: same tools, same queries, one process, one core.
//!
//! Run by `cargo xtask bench data`. Prints one line of JSON: medians in nanoseconds for each round, and the recall of
//! each engine on public query sets, if available. All three index the same texts and return ten results, with default
//! settings for English.

#![expect(clippy::print_stdout, reason = "prints the results")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::{Value, json};
use switchboard::ServerName;
use switchboard::internal::catalog::exposed::exposed_name;
use switchboard::search::{Document, Index};
use switchboard_test::tool_sets::{ListedTool, Question, tool_sets};
use tantivy::collector::TopDocs;
use tantivy::query::QueryParser;
use tantivy::schema::{Field, STORED, Schema, TextFieldIndexing, TextOptions, Value as _};
use tantivy::{IndexReader, TantivyDocument};

/// Minimum number of tools.
const TOOLS: usize = 10_000;

/// Number of results per query.
const RESULTS: usize = 10;

/// Number of rounds.
const ROUNDS: usize = 5;

/// Repetitions of all queries per engine and round.
const REPEATS: usize = 20;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match measure() {
        Ok(figures) => {
            println!("{figures}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{}", json!({ "error": error.to_string() }));
            ExitCode::FAILURE
        }
    }
}

/// A search engine under test.
trait Finder {
    /// The tools for a query, as `server/tool`.
    fn find(&self, question: &str) -> Vec<String>;
}

fn measure() -> Result<Value, Failure> {
    let sets = tool_sets()?;
    let mut recalls = Vec::new();
    for set in sets.iter().flatten() {
        let recall = |finder: &dyn Finder| set.recall(|question| finder.find(question));
        recalls.push(json!({
            "set": set.name,
            "switchboard": recall(&Ours::of(&set.tools)),
            "without": recall(&Ours::of(&set.tools).without_file_writers()),
            "tantivy": recall(&Tantivy::of(&set.tools)?),
            "bm25": recall(&Bm25::of(&set.tools)),
        }));
    }
    let seen = sets.into_iter().flatten().next();
    let (tools, questions) = seen.map_or_else(
        || (made_up_tools(), made_up_questions()),
        |set| (set.tools, set.questions),
    );

    let many = multiplied(&tools);
    let mut ours = Ours::of(&many);
    let (tantivy, bm25) = (Tantivy::of(&many)?, Bm25::of(&many));
    let finders: [(&str, &dyn Finder); 3] = [
        ("switchboard", &ours),
        ("tantivy", &tantivy),
        ("bm25", &bm25),
    ];
    let mut times: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for (name, finder) in finders {
            times
                .entry(name)
                .or_default()
                .push(median_time(finder, &questions));
        }
    }
    let update = ours.median_update(&many);
    Ok(json!({
        "tools": many.len(),
        "search": times,
        "update": update,
        "recall": recalls,
    }))
}

const VERBS: [&str; 12] = [
    "create", "read", "update", "delete", "list", "search", "convert", "send", "analyze", "export",
    "merge", "watch",
];

const THINGS: [&str; 40] = [
    "invoice",
    "contract",
    "picture",
    "calendar",
    "message",
    "customer",
    "branch",
    "ticket",
    "server",
    "backup",
    "payment",
    "report",
    "meeting",
    "folder",
    "recipe",
    "flight",
    "hotel",
    "sensor",
    "playlist",
    "lecture",
    "patient",
    "warehouse",
    "parcel",
    "vehicle",
    "garden",
    "museum",
    "molecule",
    "galaxy",
    "poem",
    "bridge",
    "forest",
    "harvest",
    "budget",
    "password",
    "cluster",
    "pipeline",
    "dataset",
    "forecast",
    "translation",
    "diagram",
];

/// One tool for each combination of verb and thing, on one server per thing.
fn made_up_tools() -> Vec<ListedTool> {
    let mut tools = Vec::new();
    for (place, thing) in THINGS.iter().enumerate() {
        let beside = THINGS.get((place + 7) % THINGS.len()).unwrap_or(thing);
        for verb in VERBS {
            tools.push(ListedTool {
                server: format!("{thing}-service"),
                name: format!("{verb}_{thing}"),
                description: format!(
                    "{verb} one {thing} by its identifier, together with the {beside} that belongs to it. \
                     Use this when somebody asks for a {thing} and the name of the {beside} is known."
                ),
                schema: json!({"type": "object", "properties": {
                    format!("{thing}_id"): {"type": "string", "description": format!("which {thing}")},
                    "limit": {"type": "integer", "description": "the most results to return"},
                }})
                .to_string(),
            });
        }
    }
    tools
}

fn made_up_questions() -> Vec<Question> {
    let questions = THINGS.iter().zip(VERBS.iter().cycle()).enumerate();
    let questions = questions.map(|(place, (thing, verb))| {
        let thing_at = |offset: usize| THINGS[(place + offset) % THINGS.len()];
        let text = format!(
            "I would like you to {verb} the {thing} that I was told about last week, compare it with every {} of the \
             same customer, and then write a short summary of the {} to /home/me/{thing}.md. Please also check whether \
             the {} has changed since yesterday, and send me the result.",
            thing_at(3),
            thing_at(11),
            thing_at(19),
        );
        Question {
            text,
            needs: Vec::new(),
        }
    });
    questions.collect()
}

/// Repeats the tools under other server names until there are enough.
fn multiplied(tools: &[ListedTool]) -> Vec<ListedTool> {
    let copies = (0..).flat_map(|copy| {
        tools.iter().map(move |tool| ListedTool {
            server: format!("{}{copy}", tool.server),
            ..tool.clone()
        })
    });
    let rounds = TOOLS.div_ceil(tools.len());
    copies.take(rounds * tools.len()).collect()
}

fn median_time(finder: &dyn Finder, questions: &[Question]) -> u64 {
    let mut times = Vec::with_capacity(REPEATS * questions.len());
    for _ in 0..REPEATS {
        for question in questions {
            let start = Instant::now();
            black_box(finder.find(&question.text));
            times.push(nanoseconds(start));
        }
    }
    median(times)
}

fn nanoseconds(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

struct Ours(Index);

impl Ours {
    fn of(tools: &[ListedTool]) -> Self {
        let mut index = Index::new();
        for (server, tools) in by_server(tools) {
            index.replace(&server, "", tools.iter().map(|tool| document(tool)));
        }
        Self(index)
    }

    fn without_file_writers(self) -> Self {
        Self(self.0.without_file_writers())
    }

    /// The median time to replace all tools of the largest server.
    fn median_update(&mut self, tools: &[ListedTool]) -> u64 {
        let servers = by_server(tools);
        let largest = servers.into_iter().max_by_key(|(_, tools)| tools.len());
        let Some((server, tools)) = largest else {
            return 0;
        };
        let times = (0..100).map(|_| {
            let start = Instant::now();
            self.0
                .replace(&server, "", tools.iter().map(|tool| document(tool)));
            nanoseconds(start)
        });
        median(times.collect())
    }
}

fn by_server(tools: &[ListedTool]) -> BTreeMap<ServerName, Vec<&ListedTool>> {
    let mut servers: BTreeMap<ServerName, Vec<&ListedTool>> = BTreeMap::new();
    for tool in tools {
        let server = tool.server.as_str().into();
        servers.entry(server).or_default().push(tool);
    }
    servers
}

fn document(tool: &ListedTool) -> Document<'_> {
    Document::new(
        exposed_name(&tool.server, &tool.name),
        tool.name.as_str().into(),
    )
    .described(tool.description.as_str())
    .with_schema(&tool.schema)
}

impl Finder for Ours {
    fn find(&self, question: &str) -> Vec<String> {
        let hits = self.0.search(question, RESULTS);
        hits.iter().map(|hit| hit.tool.to_string()).collect()
    }
}

struct Tantivy {
    reader: IndexReader,
    parser: QueryParser,
    id: Field,
}

impl Tantivy {
    fn of(tools: &[ListedTool]) -> Result<Self, Failure> {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("en_stem")
            .set_index_option(tantivy::schema::IndexRecordOption::WithFreqs);
        let english = TextOptions::default().set_indexing_options(indexing);
        let id = schema.add_text_field("id", STORED);
        let fields = ["name", "description", "parameters", "server"]
            .map(|name| schema.add_text_field(name, english.clone()));
        let index = tantivy::Index::create_in_ram(schema.build());
        let mut writer = index.writer_with_num_threads(1, 50_000_000)?;
        for tool in tools {
            let mut entry = TantivyDocument::default();
            entry.add_text(id, format!("{}/{}", tool.server, tool.name));
            let name = tool.name.replace(['_', '-'], " ");
            let parameters = parameters(tool);
            let texts = [&name, &tool.description, &parameters, &tool.server];
            for (field, text) in fields.iter().zip(texts) {
                entry.add_text(*field, text);
            }
            writer.add_document(entry)?;
        }
        writer.commit()?;
        Ok(Self {
            reader: index.reader()?,
            parser: QueryParser::for_index(&index, fields.to_vec()),
            id,
        })
    }
}

impl Finder for Tantivy {
    fn find(&self, question: &str) -> Vec<String> {
        // Most punctuation has a meaning in its query language.
        let words = question.replace(|character: char| !character.is_alphanumeric(), " ");
        let (query, _) = self.parser.parse_query_lenient(&words.to_lowercase());
        let searcher = self.reader.searcher();
        let collector = TopDocs::with_limit(RESULTS).order_by_score();
        let hits = searcher.search(&query, &collector).unwrap_or_default();
        let hits = hits.into_iter().filter_map(|(_, address)| {
            let entry: TantivyDocument = searcher.doc(address).ok()?;
            entry.get_first(self.id)?.as_str().map(str::to_owned)
        });
        hits.collect()
    }
}

struct Bm25 {
    engine: bm25::SearchEngine<u32>,
    ids: Vec<String>,
}

impl Bm25 {
    fn of(tools: &[ListedTool]) -> Self {
        let texts = tools.iter().map(|tool| {
            let name = tool.name.replace(['_', '-'], " ");
            format!(
                "{name} {} {} {}",
                tool.description,
                parameters(tool),
                tool.server
            )
        });
        let documents = (0_u32..).zip(texts);
        let documents = documents.map(|(id, contents)| bm25::Document { id, contents });
        let engine =
            bm25::SearchEngineBuilder::<u32>::with_documents(bm25::Language::English, documents);
        Self {
            engine: engine.build(),
            ids: tools
                .iter()
                .map(|tool| format!("{}/{}", tool.server, tool.name))
                .collect(),
        }
    }
}

impl Finder for Bm25 {
    fn find(&self, question: &str) -> Vec<String> {
        let hits = self.engine.search(question, RESULTS).into_iter();
        hits.filter_map(|hit| self.ids.get(hit.document.id as usize).cloned())
            .collect()
    }
}

/// The names and texts of parameters, as our own search indexes them.
fn parameters(tool: &ListedTool) -> String {
    let document = document(tool);
    format!(
        "{} {}",
        document.parameter_names.replace(['_', '-'], " "),
        document.parameter_texts
    )
}
