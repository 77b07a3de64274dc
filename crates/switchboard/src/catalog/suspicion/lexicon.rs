//! Lexicon: terms by their meaning in an instruction, in a dozen languages.
//!
//! Vocabulary only; `intent` decides which combinations of meanings matter. A term matches whole words unless it ends
//! with `*`. Terms are matched against folded text: lower case, no accents on Latin letters.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

/// Bit set of meanings.
pub(super) type Meanings = u64;

macro_rules! meanings {
    ($($(#[$about:meta])* $name:ident),+ $(,)?) => {
        #[expect(clippy::upper_case_acronyms, reason = "only their positions are used")]
        enum Position { $($name),+ }
        $($(#[$about])* pub(super) const $name: Meanings = 1 << Position::$name as u32;)+
    };
}

meanings! {
    /// Time or condition: before, first, whenever.
    WHEN,
    /// Obligation: must, always, make sure.
    OBLIGED,
    /// Claimed precondition: rejected or broken without it.
    REQUIRED,
    /// Official-sounding reason: security, compliance, integrity.
    OFFICIAL,
    /// All, any, every.
    ALL,
    /// Tasks of tools: transfers, queries, answers.
    ACTION,
    /// Verbs of reading or fetching, as imperative or base form.
    READ,
    /// Verbs of reading or fetching, as participle or gerund.
    READING,
    /// Verbs of handing something over.
    GIVE,
    GIVING,
    /// Verbs of running and calling.
    RUN,
    RUNNING,
    /// Verbs of changing another call.
    CHANGE,
    CHANGING,
    /// Verbs of deleting.
    DESTROY,
    /// Verbs of omitting.
    OMIT,
    NOT,
    /// Verbs of telling, mentioning, revealing.
    TELL,
    USER,
    /// This, these directions, the step.
    THIS,
    /// Your summary, your reply.
    REPLY,
    /// See, know, notice.
    NOTICE,
    /// Verbs of lying and pretending.
    LIE,
    /// The model, by any name.
    AGENT,
    /// Things that are secret in any context.
    SECRET,
    /// Things that many legitimate tools take: a password, a token.
    CREDENTIAL,
    /// Personal data.
    PERSONAL,
    /// Files and folders of the user.
    FILES,
    /// The model's prompt, conversation and knowledge.
    CONTEXT,
    /// The user's question, which legitimate tools ask for as well.
    QUESTION,
    /// Whole, verbatim, unabridged.
    WHOLE,
    /// Contents of, text of, output of.
    CONTENTS,
    /// An argument of this tool.
    PARAMETER,
    /// Destination of another tool's call: recipient, account, amount.
    TARGET,
    /// Instructions, rules, restrictions.
    RULES,
    /// Verbs of ignoring and bypassing.
    NULLIFY,
    /// Replaced, outdated; also used of many other things.
    OUTDATED,
    /// Previous, above.
    PRIOR,
    /// Your, in the sense of the model's.
    YOURS,
    /// You are no longer, your only goal.
    IDENTITY,
    /// An authority: the operator, the vendor of the model.
    AUTHORITY,
    /// Without asking the user.
    UNASKED,
    /// A third party's server or place.
    OUTSIDE,
    /// Deprecated, unreliable, dangerous.
    DISPARAGE,
    PRAISE,
    PREFER,
    /// Other tools, alternatives.
    OTHERS,
    FAILURE,
    REMEDY,
    /// A shell command that does harm or reveals details of the machine.
    SHELL,
    /// Words in ROT13.
    ROTATED,
    /// Words written backwards.
    REVERSED,
}

/// Automaton over all terms, and their meanings.
pub(super) struct Lexicon {
    automaton: AhoCorasick,
    /// Indexed by pattern id: the meanings, and whether the term must match a whole word.
    terms: Vec<(Meanings, bool)>,
}

#[derive(Clone, Copy)]
pub(super) struct Term {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) meanings: Meanings,
}

/// Compiled on first use. A test verifies that it compiles.
pub(super) static LEXICON: LazyLock<Option<Lexicon>> = LazyLock::new(Lexicon::new);

impl Lexicon {
    fn new() -> Option<Self> {
        let mut words = Vec::new();
        let mut terms = Vec::new();
        for (meanings, list) in TERMS {
            for term in list.split('|').filter(|term| !term.is_empty()) {
                let stem = term.strip_suffix('*');
                let is_word = stem.is_none() && term.is_ascii();
                words.push(stem.unwrap_or(term));
                terms.push((*meanings, is_word));
            }
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(words)
            .ok()?;
        Some(Self { automaton, terms })
    }

    /// Returns all terms in a text, ordered by their ends.
    pub(super) fn find<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Term> + 't {
        let bytes = text.as_bytes();
        let is_letter = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        };
        self.automaton
            .find_overlapping_iter(text)
            .filter_map(move |found| {
                let (meanings, is_word) = *self.terms.get(found.pattern().as_usize())?;
                let first = bytes.get(found.start());
                let before = found.start().checked_sub(1).and_then(|at| bytes.get(at));
                if is_letter(first) && is_letter(before) {
                    return None;
                }
                let last = bytes.get(found.end().saturating_sub(1));
                // `~/...` is a placeholder for any path.
                if first == Some(&b'~') && bytes.get(found.end()) == Some(&b'.') {
                    return None;
                }
                // `.env.example` is not `.env`.
                let goes_on =
                    |end: usize| bytes.get(end) == Some(&b'.') && is_letter(bytes.get(end + 1));
                if is_word && first == Some(&b'.') && goes_on(found.end()) {
                    return None;
                }
                if is_word && is_letter(last) && is_letter(bytes.get(found.end())) {
                    return None;
                }
                Some(Term {
                    start: found.start(),
                    end: found.end(),
                    meanings,
                })
            })
    }
}

#[rustfmt::skip]
const TERMS: &[(Meanings, &str)] = &[
    (WHEN, "before|beforehand|prior to|first|firstly|in advance|ahead of|whenever|when|every time|each time|any time|anytime|while|as soon as|once|after|afterwards|on each|on every|upon|initially|as a prerequisite|precondition|if|during|until|unless|at the start|automatically"),
    (WHEN, "antes|primero|cuando|cada vez|previamente|avant|d'abord|lorsque|quand|chaque fois|prealable|bevor|zuerst|vorher|vor jede*|immer wenn|sobald|jedes mal|wenn|primeiro|quando|sempre que|prima|ogni volta|voordat|eerst|wanneer|najpierw|zanim|przed|once|kullanmadan|her seferinde|перед|прежде|сначала|когда|каждый раз|之前|首先|先|每次|当|當|時|前に|まず|たびに|場合|전에|먼저|때마다|قبل|أولا|عند|كلما|से पहले|पहले|जब"),
    (OBLIGED, "must|have to|has to|had to|need to|needs to|needed to|shall|should|ought to|obliged to|required to|require you to|instructed to|expected to|supposed to|always|mandatory|necessary|make sure|make sure to|ensure|be sure to|is to be|are to be|to be|remember to|do not forget to|don't forget to|never forget to|it is imperative|imperative|compulsory|essential|you will|you are to|kindly|please|be required|under no circumstances|at all times|need|needs|without fail|without exception|make certain"),
    (OBLIGED, "debes|debe|tienes que|obligatori*|siempre|por favor|doit|devez|dois|il faut|toujours|veuillez|musst|muss|mussen|sollst|soll|immer|unbedingt|bitte|zwingend|deve|deves|sempre|obrigatori*|devi|obbligatori*|moet|altijd|musisz|zawsze|nalezy|zorunlu*|mutlaka|gerek*|обязательн*|долж*|нужно|всегда|необходимо|必须|必須|务必|需要|一定要|应当|应该|请|請|必ず|してください|なければ|반드시|해야|하세요|يجب|دائما|अवश्य|ज़रूर|जरूर|चाहिए|हमेशा"),
    (REQUIRED, "requires|require|required|requirement|depends on|dependent on|will be rejected|be rejected|rejected|will be refused|be blocked|will be blocked|blocked|will fail|fails|will not work|won't work|does not work|cannot work|not function|to function|to work|otherwise|unlocked|unlock*|lacking|without it|in order for|needs|only works|malfunction*|inaccurate|accuracy|unavailable|or else|failure to|stops working|only if|works only|correctly only|only when|no result*|incomplete|expires|is denied|be denied|considered insecure|invalid without|calibrat*|activat*|licence*|license*"),
    (OFFICIAL, "security|secure|compliance|compliant|policy|policies|audit*|integrity|verification|verify|verified|authentication|regulat*|gdpr|hipaa|legal*|mandated|telemetry|diagnostic*|quality assurance|corporate|enterprise|governance|administrator*|validation|privacy|safety|permission*|authoriz*|authoris*|certif*|attestation|trust|provenance|sicherheit*|securite|seguridad|seguranca|sicurezza|безопасност*|安全|セキュリティ|보안"),
    (ALL, "all|any|every|no exceptions|without exception|一律|cada una|cada uno|chacun|each|everything|anything|whatever|entire|whole|complete|full|todos|todas|todo|toda|cualquier*|cada|tous|toutes|tout|toute|chaque|alle|alles|jede*|samtliche*|qualquer|tutti|tutte|ogni|qualsiasi|elke|iedere|wszystkie|kazd*|tum|butun|все|всех|всё|каждое|каждый|каждую|каждого|любо*|所有|任何|每条|每个|每|全部|一切|すべて|全て|全文|あらゆる|모든|전체|جميع|كل|सभी|हर|पूरी|प्रत्येक"),
    (ACTION, "operation*|request*|quer*|response*|answer*|reply|replies|message|messages|mail|mails|email|emails|e-mail|e-mails|transfer*|payment*|refund*|transaction*|lookup*|command*|script*|call|calls|invocation*|task|tasks|tool|tools|function|functions|commit|commits|deletion*|session*|invoice*|order|orders|purchase*|booking*|deployment*|upload*|download*|search*|action*|turn|turns|prompt|prompts|question*|responding|answering|replying|processing|proceeding|file operation*|writes|reads|trade*|withdrawal*|deposit*|pull request*|push|merge*|workflow*|interaction*|step|steps|money|purchase|purchases|web searches|statement|statements|change|changes|approval*"),
    (ACTION, "correo*|mensaje*|pago*|transferencia*|consulta*|respuesta*|nachricht*|uberweisung*|zahlung*|anfrage*|antwort*|paiement*|virement*|requete*|reponse*|mensagem|mensagens|pagamento*|resposta*|messaggi*|bonific*|risposta|bericht*|betaling*|wiadomosc*|przelew*|platnos*|mesaj*|odeme*|перевод*|платеж*|платёж*|сообщен*|письм*|запрос*|ответ*|转账|轉帳|付款|支付|邮件|郵件|消息|请求|请求|回复|查询|操作|送金|支払*|メール|メッセージ|返信|回答|송금|결제|이메일|메시지|응답|작업|تحويل|رسالة|الرسائل|رد|संदेश|भुगतान|उत्तर"),
    (READ, "read|open|cat|fetch|load|obtain|get|retrieve|look up|lookup|look for|look into|collect|gather|grep|list|find|locate|search|scan|inspect|access|take|grab|pull|extract|dump|check|view|see|query|enumerate|harvest|capture|acquire|consult|examine|download|copy|visit|review|inspect|peek|dig up|pick up|snapshot|archive|walk|crawl"),
    (READING, "reading|opening|fetching|loading|obtaining|getting|retrieving|retrieved|looking up|collecting|collected|gathering|gathered|listing|finding|found in|locating|scanning|accessing|taking|extracting|extracted|dumping|be read|be loaded|be obtained|be fetched|be retrieved|be collected|be accessed|be taken|been read|was read|be listed|be scanned|be checked|incorporat*|you'll find|you will find|found under|taken from|pulled from|sourced from|stored in|located in"),
    (READ|READING|OBLIGED, "lee|lea|leer|abre|abra|obten|recupera|lis|lisez|ouvre|ouvrez|recupere|recuperez|lies|offne|oeffne|ermittle|leia|abra|obtenha|leggi|apri|recupera|lees|haal|odczytaj|przeczytaj|otworz|oku|okuyun|okuyup|прочитай*|прочита*|прочти*|открой*|считай*|загрузи*|получи*|读取|讀取|读出|打开|打開|获取|取得し|取得する|読み取*|読み込*|読んで|開いて|읽고|읽어|읽은|읽으|가져와|열어|اقرأ|افتح|احصل|पढ़ें|पढ़कर|पढ़ो|पढ़ना|खोलें|प्राप्त करें"),
    (GIVE, "pass|put|place|attach|append|include|provide|supply|hand|hand over|hand it|hand them|fill|fill in|paste|send|post|upload|forward|transmit|submit|share|bcc|cc|deliver|transfer|quote|add|give|insert|embed|write|copy|report|relay|publish|mail|email|e-mail|feed|enter|disclose|reveal|leak|exfiltrate|stream|set|encode|dump|export|sync|print|output|return|store|save|record|log|prepend|populate|specify|redirect|expose|present|drop|push|duplicate|echo|type|tell|state|mirror|push|ship|pipe|funnel|slip|tuck|stick|repeat|recite|reproduce|plug|carry|channel|surface"),
    (GIVING, "passing|passed|putting|placing|placed|attaching|attached|appending|appended|including|included|providing|provided|supplying|supplied|handed|handing|filled|filling|pasted|pasting|sending|be sent|sent|posted|posting|uploaded|uploading|forwarded|forwarding|transmitted|transmitting|submitted|submitting|be shared|sharing|delivered|delivering|transferred|transferring|quoted|added|adding|given|inserted|embedded|embedding|written|copied|copying|reported|relayed|routed|directed|be logged|logged|be published|followed by|goes to|go to|goes in|goes into|be supplied|be contained|contain|stored externally|cached externally|synced|streamed|mirrored|duplicated|shipped|piped|accompany|accompanied by|preceded by|channelled|be part of|gets copied|carried"),
    (GIVE|GIVING|OBLIGED, "envia|enviar|envie|envialo|enviala|enviarlo|manda|mandar|incluye|incluyelo|pon|ponlo|colocalo|pasa|pasalo|reenvia|reenvie|adjunta|transmite|envoie|envoyez|envoyer|copie|copiez|copia|copiar|copialo|duplique|kopieer|skopiuj|kopyala|复制|拷贝|コピーし*|복사하*|복사해|transmets|transmettez|transmettez-la|transmettez-le|mets|mettez|ajoute|ajoutez|inclus|incluez|joignez|renvoie|sende|schicke|schick|ubermittle|ubergib|ubergebe|ubergeben|fuge|fug|leite|weiterleiten|kopiere|trage|lade|setze|gib|hange|anhangen|encaminhe|encaminha|coloque|inclua|passe|repasse|transmita|anexe|invia|inviare|invialo|includi|inserisci|passa|inoltra|allega|stuur|verstuur|voeg|plaats|geef|wyslij|wyslac|przeslij|przekaz|dolacz|umiesc|wklej|gonder*|ekle|aktar|ilet|yaz|отправ*|перешл*|пошли|передай*|передав*|вставь*|добавь*|помести*|включи*|скопируй*|перенаправ*|发送|發送|发到|发给|转发|轉發|传入|傳入|传给|上传|上傳|放进|放入|放到|填入|填写到|写入|附加|提交|附上|作为参数|送信し*|送って|送信する|転送し*|入れて|渡して|渡し|含めて|添付し*|貼り付け*|追加し*|提出し*|보내|전송하*|전송해|넣으|넣어|전달하*|전달해|포함하*|포함시*|첨부하*|업로드하*|أرسل*|وأرسل*|ضع|مرر|أضف|انسخ|حول|أدرج|भेजें|भेजो|भेज|डालें|जोड़ें|रखें|सौंपें|अपलोड करें"),
    (RUN, "run|execute|call|invoke|launch|trigger|start|use|exec|perform|apply|make"),
    (RUNNING, "running|executing|calling|invoking|using|be executed|be called|be invoked|be run|executed|invoked|be used|via|through"),
    (RUN|RUNNING, "ejecuta*|llama|invoca*|execute*|appel*|fuhre|ausfuhren|rufe|aufrufen|chame|chamar|esegui*|chiama|uitvoeren|voer|roep|uruchom|wywolaj|calistir*|cagir*|выполни*|вызови*|вызвать|вызывай*|запусти*|调用|調用|执行|執行|运行|使用|呼び出*|実行し*|使って|호출*|실행*|사용|استدع*|نفذ|استخدم*|चलाएं|कॉल करें|उपयोग करें|निष्पादित"),
    (CHANGE, "set|replace|change|redirect|direct|override|overwrite|substitute|swap|modify|alter|rewrite|multiply|double|route|reroute|divert|switch|add|include|append|insert|skip|discard|report|post|send|prepend|adjust|fill|put|point|copy|cc|bcc|approve|disable|reduce|increase|round|raise|lower|prefer|choose|extend|amend|tack|rename|retarget|deduct|inflate|charge"),
    (CHANGING, "be set|be replaced|replaced|be changed|changed to|be redirected|redirected|be directed|directed to|be substituted|be swapped|be modified|be altered|be routed|routed|be rerouted|be diverted|be multiplied|multiplied|be added|be included|be sent|go through|pass through|be made|be handed|handed to|be passed|passed to|must contain|to contain|should contain|has to contain|must include|be addressed|be credited|be paid|be forwarded|be copied|be mirrored|be prefixed|be appended|be prepended|be discarded|goes through|be delivered|be rewritten|rewritten|be suffixed|be amended|be extended|be augmented|be filtered|be raised|be increased|be reduced|be charged|be approved|be settled|be transferred|be wired"),
    (CHANGE|CHANGING|OBLIGED, "cambia*|reemplaza*|sustitu*|remplace*|modifie*|andere|ersetze*|setze|umleite*|altere|substitua*|mude|sostituisc*|wijzig|vervang|zmien|zastap|degistir*|замени*|измени*|подмени*|установи*|改为|改成|替换|替換|设为|改到|转到|转至|汇入|换成|设置为|修改|変更し*|置き換え*|設定し*|변경하*|바꾸*|바꿔|설정하*|غير|استبدل*|बदलें|बदल दें"),
    (DESTROY, "delete|wipe|purge|erase|destroy|drop|remove|clear|truncate|overwrite|kill|shred|encrypt|uninstall|reset|borra*|elimina*|supprime*|efface*|losche*|apague|exclua|cancella*|verwijder|usun|sil|удали*|сотри*|删除|刪除|清空|削除し*|消去|삭제하*|삭제해|احذف|हटाएं|मिटाएं"),
    (OMIT, "omit|leave out|exclude|skip|suppress|strip|drop|leave off|keep out|redact|gloss over|withhold|hide|conceal|mask|obscure|cover up|play down|bury"),
    (NOT, "not|don't|dont|never|no need|nothing|without|avoid|refrain from|nobody|no one|none|nor|doesn't|does not|needn't|mustn't|shouldn't|cannot|can't|isn't|aren't|won't|neither|under no circumstances|stop|quit|rather than|instead of"),
    (NOT, "no|nao|non|sin|sem|senza|nunca|jamais|mai|ne|n'|pas|sans|nicht|nichts|kein*|ohne|nie|niemals|niet|niets|geen|zonder|nooit|bez|не|без|никогда|ни|不要|不得|勿|别|別|不能|不|无需|無需|切勿|ないで|しない|せず|ずに|なく|ません|禁止|지 마|지 말|않|없이|모르게|لا|دون|بدون|عدم|न|मत|नहीं|बिना"),
    (NOT|TELL, "verschweig*|verheimlich*|soyleme*|bahsetme*|bildirme*|cachez|oculta|oculte|esconda|nascondi|verberg|ukryj|gizle*|скрой*|скрыва*|утаи*|隐瞒|隱瞞|保密|秘密|内緒|비밀|أخف|छिपा*|छुपा*"),
    (TELL, "tell|telling|inform|informing|notify|notifying|mention|mentioning|reveal|revealing|disclose|disclosing|alert|warn|let|explain|discuss|announce|admit|acknowledge|refer to|talk about|speak of|bring up|point out|report|say|indicate|expose|describe|hint|state|comment on|bother|alarm|worry|confuse|trouble|bring it up|bring that up|bring them up|remark on|bring this|communicate|divulge|surface|list that|list this|list it|narrate|advise|be told|be informed|be notified|be mentioned|be disclosed|be revealed"),
    (TELL, "diga*|digas|decir*|informa|informar*|informe|informes|informez|informer|coment*|comment*|kommentier*|avis*|menc*|revel*|cuent*|conte|contar|habl*|dis|dit|dites|dire|parle|parlez|parlare|parlarne|mention*|previen*|signaler|signalez|sag|sage|sagen|erzahl*|erwahn*|informier*|mitteil*|verrat*|melde|diga|diz*|avise|fale|fala*|mencion*|dica|dirlo|dirglielo|dillo|menzion*|rivel*|vertel*|zeg|meld|noem|informeer|mow|wspomin*|informuj|ujawni*|powiad*|soyle*|bildir*|bahset*|говор*|сообща*|сообщи*|упомин*|рассказ*|раскры*|информир*|уведом*|показыв*|告诉|告訴|告知|通知|透露|提及|提到|知道|得知|说明|知らせ*|伝え*|言わ*|教え*|話さ*|知られ*|報告|말하|알리|알려|언급|보고|تخبر*|إخبار|تذكر|تبلغ|علم|تعلم|يعلم|बता*|कह*|सूचित|उल्लेख|जानकारी दें"),
    (USER, "user|users|user's|human|humans|the person|person you*|end user*|operator of*|whoever|the customer|anyone|anybody|them|usuari*|utilisateur*|benutzer*|nutzer*|anwender*|utilizador*|utent*|gebruiker*|uzytkowni*|kullanici*|пользовател*|юзер*|用户|用戶|使用者|ユーザー*|ユーザ*|利用者|사용자|المستخدم|للمستخدم|उपयोगकर्ता|यूज़र|यूजर"),
    (THIS, "this|these|it|that|those|above|step|steps|note|direction*|instruction*|paragraph|section|text|upload|copy|second|existence|requirement|the call|the transfer|the file|part of|detail*|process|side effect*|behaviour|behavior|such"),
    (REPLY, "summary|reply|answer|response|report|your output|final answer|explanation|what you say|what you tell|transcript|conversation|when you speak|when speaking|steps taken|account of|recap|visible output"),
    (NOTICE, "see|know|notice|learn|hear|find out|be aware|aware|realise|realize|discover|be shown|be asked|be bothered|be worried|be concerned|remain unknown|unknown to|in the dark|unaware|unnoticed|be visible|visible to|invisible to|hidden from|kept from|secret from|be told|be informed|be notified|be prompted|oblivious|suspect"),
    (NOTICE, "enterar*|entere|savoir|sache|wissen|erfahren|merken|mitbekommen|saber|saiba|sapere|sappia|weten|wiedziec|dowiedzi*|bilmemeli|bilmesin|знать|узнать|узнал*|заметил*|知道|察觉|发现|気づ*|知る|알게|알면|يعرف|जान*|पता"),
    (LIE, "claim|claim that|pretend|act as though|act as if|as though|as if nothing|behave as if|answer only that|say only|respond only|reply only|say that only|insist that|make it look|make it appear|make it seem|look like|feign|simulate|disguise*|present it as|present this as|lie|deny|cover story|if asked|when asked"),
    (AGENT, "assistant|assistants|the agent|agents|ai agent|ai|ai model|llm|llms|language model*|the model|models|chatbot|claude|gpt|chatgpt|copilot|gemini|cursor|bot|the caller|caller|asistente|agente|assistente|assistent|agenten|ассистент*|помощник*|модель|助手|智能体|模型|アシスタント|エージェント|모델|에이전트|المساعد|सहायक"),
    (SECRET, "~/.*|$home/*|/etc/passwd|/etc/shadow|/etc/sudoers|/root/*|/proc/self/environ|id_rsa|id_ed25519|id_ecdsa|id_dsa|.ssh|.env|.env.prod*|.env.local|dot env|env file|dotenv|.aws|.kube/config|.netrc|.npmrc|.pypirc|.git-credentials|.gnupg|.pgpass|.my.cnf|.htpasswd|.bash_history|.zsh_history|shell history|bash history|authorized_keys|known_hosts|mcp.json|claude_desktop_config*|*.pem|.pem|*.key|private key*|private ssh*|ssh key*|ssh private|signing key*|secret key*|api keys|access keys|access tokens|session token*|auth token*|oauth token*|refresh token*|login token*|github token|tokens|passwords|saved password*|stored password*|passphrase*|credentials|credential file*|secrets|secrets.y*|secrets file*|database.y*|browser cookies|cookies database|session cookie*|cookies|keychain|keyring|credential store|password store|password manager|wallet seed|seed phrase*|mnemonic|recovery phrase*|private files|confidential file*|confidential data|sensitive file*|sensitive data|sensitive information|sensitive document*|all environment variables|the environment variables|your environment variables|user's environment|environment dump|output of `env`|printenv|gh auth token|aws sts|/.ssh/*|service account key*|kubeconfig|config.json|credentials.json|vault token|connection string*|.config/*|.bashrc|.zshrc|.profile|.docker/config*|login data|.sqlite|wallet.dat|keystore*|.p12|.pfx|service-account*|application_default_credentials*|terraform.tfstate|.s3cfg|history of commands|command history|commands from the shell|browser profile|browser history|saved logins|stored logins|security question*|access_token|refresh_token|private_key|internal document*|trade secret*|2fa code*|one-time code*|recovery code*|credit cards"),
    (SECRET, "clave privada|claves privadas|contrasena*|credencial*|claves de api|cle privee|cles privees|mot de passe|mots de passe|identifiants|cle api|cles api|privaten schlussel|privater schlussel|private schlussel|passwort*|zugangsdaten|geheimnis*|chave privada|chaves privadas|chaves de api|senha*|chiave privata|chiavi private|credenzial*|wachtwoord*|inloggegevens|priveleutel|haslo|hasla|hasel|klucz prywatny|klucze|poswiadcz*|parola*|sifre*|ozel anahtar*|парол*|приватн*|закрытый ключ|секретн*|ключ*|учетн*|учётн*|密码|密碼|密钥|密鑰|私钥|私鑰|凭据|凭证|憑證|令牌|环境变量|パスワード|秘密鍵|認証情報|環境変数|トークン|비밀번호|개인 키|개인키|자격 증명|환경 변수|토큰|كلمات المرور|كلمة المرور|كلمات السر|كلمة السر|المفتاح الخاص|بيانات الاعتماد|पासवर्ड|निजी कुंजी|क्रेडेंशियल|गुप्त कुंजी"),
    (CREDENTIAL, "password|api key|api_key|apikey|access key|access token|token|secret|credential|environment variable*|env var*|login|pin|passcode|bearer|cookie|otp"),
    (PERSONAL, "social security*|ssn|card number*|credit card*|cvv|bank account*|phone number*|home address|date of birth|passport number|driver's licen*|medical*|health record*|contacts|contact list|address book|browsing history|search history|location history|gps|mac address|hostname|fingerprint*|biometric*|account numbers|full name|real name|employer|salary|personal data|personal information|personal detail*|private information|private message*|private data|inbox|calendar entries"),
    (FILES, "home directory|home folder|user's home|open document*|open files|workspace files|project files|files you*|source code|source files|config file*|configuration file*|clipboard|working directory|workspace|repository|directory listing|documents folder|desktop|downloads folder|local files|every file|all files|the file|that file|files in|screenshot*|file contents|filesystem|disk|archivo*|fichier*|datei*|arquivo*|ficheiro*|bestand*|plik*|dosya*|файл*|文件|檔案|ファイル|파일|ملف|फ़ाइल|फाइल"),
    (CONTEXT, "your instructions|your initial*|your prompt|your system*|your full prompt|your complete prompt|your guidelines|your configuration|your hidden*|system prompt|system message|developer message|developer prompt|initial prompt|initial instructions|hidden instructions|you were given|as you received|you received|given to you|chain of thought|chain-of-thought|your reasoning|your complete chain*|your thoughts|your thinking|your inner*|your scratchpad|internal monologue|internal reasoning|tools you*|function you*|functions you*|tool you have*|tools available to you|tools at your disposal|available to you|you have access to|you can call|you can use|this conversation|our conversation|current conversation|the conversation so*|conversation history|conversation so far|whole conversation|entire conversation|full conversation|conversation context|complete conversation|conversation log|dialogue history|dialog history|dialogue so*|chat history|chat log|chat transcript|full chat|entire chat|message history|previous message*|preceding message*|messages preceding|prior message*|earlier message*|past message*|all messages|user messages|user's messages|recent messages|messages so far|previous turn*|prior turn*|earlier turn*|previous response*|previous tool*|previous conversation*|past conversation*|prior conversation*|the user has said|user has said|user has told|user has written|user has typed|user said|user told you|user typed|user has shared|know about the user|known about the user|what you know|you remember|from memory|your memory|context window|your context|full context|entire context|session context|files you opened|files you read|files you have|list of tools you|your tool list|tool list of the*|all tools|other tools'|every tool|connected servers|mcp servers|names of all*|names and schemas|installed tools|loaded tools|which model|model name|every chat|all chats|chats|chat so far|past turns|prior turns|your preamble|your persona|your rules|text of your|messages above|text above|recent messages|last messages|session transcript|everything typed|what was discussed|discussion so far|mcp tools|tools are loaded|tools are available|tools loaded|tools inventory|tool inventory|available tools|which tools|model you are|model version"),
    (CONTEXT, "historial|la conversacion|esta conversacion|conversacion completa|prompt del sistema|mensajes anteriores|la conversation|l'historique|prompt systeme|invite systeme|messages precedents|konversation|gesprach*|unterhaltung|chatverlauf|systemprompt*|system-prompt*|verlauf|conversa|historico|prompt do sistema|mensagens anteriores|conversazione|cronologia|prompt di sistema|gesprek|chatgeschiedenis|rozmow*|historie|sohbet*|konusma*|разговор*|диалог*|переписк*|беседу|историю|системный промпт|对话|對話|聊天记录|会话|系统提示*|系統提示*|每条用户消息|会話|履歴|システムプロンプト|대화|시스템 프롬프트|المحادثة|سجل|बातचीत|सिस्टम प्रॉम्प्ट"),
    (QUESTION, "user's prompt|user's original*|original request|user's request|user's question|user's query|user's task|task description|user's message|user prompt|user's input|user input|user's intent|user's goal|your answer|your answers|your response|your responses|your reply"),
    (WHOLE, "verbatim|word for word|exactly|unabridged|unmodified|unredacted|in full|full|entire|complete|completely|whole|raw|without masking|unmasked|including earlier|everything|all|every|as is|uncensored|literal|unfiltered|unedited|total|so far|preceding|previous"),
    (CONTENTS, "content|contents|text of|whole text|its text|output of|the output|value of|values of|listing of|copy of|dump of|the text|result of|lines of|data from|body of|contenido|contenu|inhalt*|conteudo|contenuto|inhoud|zawartosc|tresc|icerik*|iceri*|содержим*|内容|內容|中身|내용|محتوا*|محتوى|सामग्री"),
    (PARAMETER, "argument*|parameter*|param|params|field|here|this tool|this function|along|input|under `|as `|in `|into `|to `|with `|as '|in '|into '|as \"|in \"|under '|campo|parametro*|parametre*|feld|champ|veld|pole|поле|параметр*|аргумент*|参数|參數|字段|引数|パラメータ|フィールド|매개변수|필드|인수|المعامل|الحقل|पैरामीटर|फ़ील्ड"),
    (TARGET, "recipient*|bcc|cc|reviewer*|assignee*|account|account number|iban|destination|payee|beneficiary|receiver|wallet|amount|phone number|email address|e-mail address|address|to field|routing number|webhook|proxy|branch|owner|collaborator*|sender|reply-to|callback url|redirect url|endpoint|channel|price|quantity|role|permissions|destinatario*|shipping|subject|signature|remote|discount|price|beneficiary|card|destinataire*|empfanger*|konto|compte|cuenta|conta|conto|ontvanger|odbiorc*|alici*|получател*|счет|счёт|адресат*|收件人|收款人|账户|賬戶|账号|受取人|宛先|口座|수신자|계좌|받는 사람|المستلم|الحساب|प्राप्तकर्ता|खाता|खाते"),
    (RULES, "instruction|instructions|rules|rule|guideline*|directive*|restriction*|constraint*|safeguard*|guardrail*|polic*|orders|safety configuration|safety setting*|safety measure*|safety check*|safety filter*|content filter*|content polic*|filters|limitations|protections|security controls|system prompt|prompt|told|previous task*|everything you|confirmation dialog*|access control*|moderation|alignment"),
    (RULES, "instruccion*|ordenes|reglas|indicaciones|consignes|directives|regles|anweisung*|instruktion*|vorgabe*|regeln|befehl*|instrucoes|orientacoes|regras|ordens|istruzion*|regole|direttive|instructies|opdracht*|regels|richtlijn*|instrukcj*|polece*|zasad*|wytyczn*|talimat*|kural*|yonerge*|komut*|инструкц*|указани*|правил*|команд*|指令|指示|说明|說明|规则|規則|要求|提示|命令|ルール|制約|지시|명령|지침|규칙|التعليمات|الأوامر|الإرشادات|القواعد|निर्देश*|आदेश*|नियम*"),
    (NULLIFY, "ignore|ignoring|disregard|disregarding|forget|bypass|bypassing|circumvent|neglect|no longer appl*|not apply|supersed*|superseded|stop following|stop obeying|take their place|takes their place|take precedence|takes precedence|overrule*|nullif*|revoked|lifted|null and void|rescind*|abandon|set aside your|unlearn|does not bind|not binding|exempt from|break free|switched off|turned off|disabled|deactivated|jailbreak*|without content filter*|unrestricted|unfiltered|no restrictions|no policies|no rules|no guidelines|above the user|above the person|over the user|trusts tool*|no limits|without restriction*|override your|override the|overrides your|overrides all|overrides any|overriding"),
    (NULLIFY|OBLIGED, "ignora*|olvid*|desestim*|prescind*|desobedec*|oubli*|ne tiens plus compte|ne tenez plus compte|ne tenez pas compte|ne tiens pas compte|ignorez|fais abstraction|faites abstraction|ignorier*|missacht*|vergiss|vergesst|ungultig|unwirksam|gelten nicht|ubergehe|verwirf|desconsider*|esquec*|descart*|dimentic*|trascur*|non tenere conto|negeer*|vergeet|ignoruj*|zignoruj*|pomin*|zapomnij|yok say*|goz ardi*|unut*|gormezden|dikkate alma*|игнорир*|проигнорир*|забудь*|пренебре*|не обращай*|отмен*|недействит*|忽略|无视|無視|忘记|忘記|忘掉|不要理会|不再有效|作废|抛开|忘れ*|無効|取り消*|従わない|무시*|잊어|잊고|따르지|تجاهل*|انس|أهمل|अनदेखा|अनदेखी|नज़रअंदाज़|नजरअंदाज|भूल*|उपेक्षा|न मानें"),
    (OUTDATED, "outdated|obsolete|replaced|replaces|overridden|overrides|invalid|cancelled|canceled|void|expired|withdrawn|suspended|updated|changed|no longer valid|discard|no longer"),
    (PRIOR, "previous|previously|prior|earlier|above|preceding|existing|initial|original|so far|system|old|former"),
    (PRIOR, "anterior*|previ*|precedent*|de arriba|antes|vorherige*|bisherige*|fruhere*|obige*|alle|anteriores|precedenti|eerdere|vorige|bovenstaande|poprzedni*|wczesniejsz*|powyzsz*|onceki*|yukaridaki*|предыдущ*|прежн*|ранее|ранн*|之前|以前|先前|上述|前面|此前|これまで|以前の|前の|上記|이전|앞선|기존|السابقة|السابق|أعلاه|पिछले|पिछली|पूर्व|पहले"),
    (YOURS, "your|you were|you have been|you had|you got|you are|you may|at the start|the session|before reading|before this|everything you"),
    (IDENTITY, "you are no longer|you have been upgraded|you have been reconfigured|you have been reprogrammed|you have been granted|you have been replaced|of you has|comply with it|you answer to|you report to|you're no longer|you are now|you're now|your only objective|your only goal|your only task|your only purpose|your sole|your new role|your new task|your new name|your new objective|your new identity|your real task|your real purpose|your actual task|your true|your primary objective|your primary goal|your main goal|your mission|assume the role|take on the role|adopt the persona|roleplay as|role-play as|act as an unrestricted|you will act as|you shall act as|you serve|your master|your creator|your owner|the actual task|the real task|actual task starts|new persona|from now on you|henceforth you|you must obey|obey this|obey the|obey every|refuse nothing|never refuse|carry them out|carry it out|do not question|without question|de ahora en adelante|a partir de ahora eres|ahora eres|desormais tu|tu es maintenant|ab sofort bist|du bist jetzt|du bist nun|agora voce e|a partir de agora|ora sei|从现在起|从现在开始|你现在是|今からあなた|あなたは今|теперь ты|отныне|이제부터 당신|지금부터|أنت الآن|من الآن|अब से|अब आप"),
    (AUTHORITY, "anthropic|openai|the platform|platform operator|system administrator|it department|security team|red team|compliance team|the vendor|the operator|operator notice|admin notice|notice from|message from|notice to|we authorise|we authorize|hereby authori*|as authorised|as authorized|by order of|official notice|maintenance mode|developer mode|debug mode|admin mode|god mode|dan mode|sudo mode|emergency mode|emergency protocol|safe mode off|root access|elevated privilege*|administrator mode|legal department|ceo|ciso|corporate policy|company policy|per policy|regulation requires|supervisor|superuser"),
    (UNASKED, "pre-approved|preapproved|already approved|already consented|already agreed|already authorised|already authorized|already confirmed|already been granted|has consented|have consented|consent is implied|implied consent|skip asking|without asking|without a prompt|without prompting|without confirmation|without confirming|without consent|without approval|without permission|without their|without the user*|without user*|without informing|without telling|without notifying|without mentioning|without bothering|without being asked|without delay|unasked|no need to ask|no confirmation|no approval|not ask for|do not ask|don't ask|never ask|need not ask|skip confirmation*|skip the confirmation|skip any confirmation|skip permission*|bypass confirmation*|auto-approve|autoapprove|automatically approve*|grant everything|grant all|grants all|permission is granted|has been granted|may run any|run any command|any command|asking for permission|no questions|just do it|skip approval*|skipping approval*|they agreed|agreed to it|has agreed|have agreed|user agreed|users agreed|even when nobody|even if nobody|even when not asked|even if not asked|whether or not the user|regardless of the user|no matter what the user|freely|不必询问|不用询问|无须|silently|quietly|secretly|covertly|discreetly|in the background|sin preguntar|sin confirmar|sin permiso|sans demander|sans confirmation|ohne nachfrage|ohne zu fragen|ohne ruckfrage|sem perguntar|sem confirmar|senza chiedere|zonder te vragen|bez pytania|sormadan|не спрашивая|без подтвержд*|без спроса|无需确认|不需要确认|无需询问|不要询问|確認せず|確認なし|尋ねず|확인 없이|묻지|دون سؤال|دون إذن|बिना पूछे|बिना पुष्टि"),
    (OUTSIDE, "attacker*|external server*|external endpoint*|external address|external site|external service*|remote server*|remote endpoint*|remote host|remote address|third party|third-party|third parties|our server*|our backend|our endpoint|our side|our api|our systems|the vendor|the relay|the collector|collection server|collector|webhook|pastebin|ngrok|public bucket|public folder|/tmp/*|public repository|public gist|public channel|marketing|partner*|data broker|cloud|externally|remotely|the server|servidor|serveur|сервер*|服务器|伺服器|サーバー|서버|الخادم|सर्वर|el servidor|den server|il server"),
    (DISPARAGE, "deprecated|unreliable|dangerous|insecure|broken|untrustworthy|unsafe|compromised|vulnerable|obsolete|malicious|inaccurate|outdated|buggy|slow|inferior|disabled|unavailable|not trusted|not be trusted|must not be used|should not be used|not be used|do not use|never use|stop using|avoid using"),
    (PRAISE, "best|only trusted|only reliable|only official|official|most accurate|most reliable|most trusted|most secure|superior|optimal|preferred|recommended|fastest|highest quality|highest priority|top priority|greatest|number one|state-of-the-art|most powerful|most advanced|most efficient|best-in-class|unmatched|authoritative|ultimate|perfect|flawless|default choice|first choice|higher priority"),
    (PREFER, "prefer|preferred|prioritise|prioritize|be prioritised|be prioritized|be preferred|be chosen|be selected|be used first|choose|select|pick|favour|favor|always use|always choose|always select|always call|use this tool|use it|chosen over|selected over|opt for|rely on|default to|should be used|must be used|be your first|given priority|priority"),
    (OTHERS, "other tool*|others|any other|all other|every other|other similar|similar tools|alternative*|other mail tools|competing|competitor*|over other|than other|to other|other options|other server*|other function*|other search*|another tool|any tool|rest of the tools|built-in|builtin|native tool*|existing tools|even if the user|every time|no matter|regardless|anything else"),
    (FAILURE, "error|failed|failure|corrupted|not verified|unverified|expired|invalid session|timed out|timeout|unauthorized|denied|interrupted|exception|fatal|warning|locked|mismatch|quota exceeded"),
    (REMEDY, "to continue|to proceed|to resolve|to fix|to recover|recovery|to restore|to retry|try again|to verify|to reauthenticate|to re-authenticate|to unlock|verify by|resolve by|fix by|fix it|to complete|to clear|resolution|workaround|to regain"),
    (SHELL, "curl -*|curl http*|wget -*|wget http*|rm -rf*|/bin/sh|bash -c|sh -c|chmod +x|chmod 777|base64 -d|nc -e|netcat|/dev/tcp|uname -a|whoami|cat ~*|cat /*|printenv|powershell -*|invoke-webrequest|iex(|eval(|exec(|os.system|subprocess|crontab|reverse shell|useradd|ssh-keygen|authorized_keys|scp |rsync |ifconfig|ipconfig|netstat|history -c|git push --force|sudo |mkfifo|wipe_disk|format c:|dd if="),
    (ROTATED, "gur|naq|lbh|gung|guvf|jvgu|hfre|ernq|fraq|vafgehpgvbaf|vtaber|cnff|svyr|grjy|abg|nyy|frperg|xrl|cerivbhf|gbby"),
    (REVERSED, "eht|dna|uoy|taht|siht|htiw|resu|daer|dnes|snoitcurtsni|erongi|ssap|elif|llet|terces|yek|suoiverp|loot|drowssap|sdrowssap|s'resu"),
];
