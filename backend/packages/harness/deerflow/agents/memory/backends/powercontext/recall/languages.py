"""What recall knows of languages beside English and Chinese.

That is their function words, how a request is put in them, and endings.

A language's function words say nothing of a subject. Its request words are the verbs and forms of work of requests
("write", "explain", "list"), and the words memories are put in ("the user prefers"): they count half. Endings are those
of nouns above all, the longest first to be cut; what is left is the word's stem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, eq=False)
class Language:
    """The words of a language that say little, and what its nouns end in (or begin with)."""

    function_words: frozenset[str]
    request_words: frozenset[str]
    endings: tuple[str, ...]
    beginnings: tuple[str, ...] = ()
    shortest_stem: int = 4


def _language(
    function_words: str,
    request_words: str,
    endings: str,
    beginnings: str = "",
    shortest_stem: int = 4,
) -> Language:
    def by_length(text: str) -> tuple[str, ...]:
        return tuple(sorted(text.split(), key=len, reverse=True))

    return Language(
        frozenset(function_words.split()),
        frozenset(request_words.split()),
        by_length(endings),
        by_length(beginnings),
        shortest_stem,
    )


GERMAN: Final = _language(
    """
    aber alle allem allen aller alles als also am an andere anderen anderes auch auf aus bei beim bin bis bist bitte brauche brauchen da
    dabei dafür damit danach danke dann daran darauf darf das dass dazu dein deine deinem deinen deiner dem den denn der des dich die dies
    diese diesem diesen dieser dieses dir doch dort du durch dürfen eben ein eine einem einen einer eines einige einmal er es etwa etwas
    euch euer eure für gab ganz gar gegen gerade gern gerne gestern gibt gut guten habe haben hallo hat hatte hatten heute hier hin hinter
    ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im immer in ins ist ja jede jedem jeden jeder jedes jetzt kann kannst kein keine keinem
    keinen keiner können könnte könntest lang lange leider liebe lieber machen mal man mehr mein meine meinem meinen meiner mich mir mit
    möchte möchten morgen muss müssen nach nächste nächsten nächster neben nein nicht nichts nie noch nochmal nun nur ob oder ohne paar
    schon sehr sein seine seinem seinen seiner seit selbst sich sie sind so sogar soll sollen sollte sollten sondern sonst sowie tag über
    um und uns unser unsere unserem unseren unserer unter viel viele vielen vom von vor wann war waren warum was weil weiter welche welchem
    welchen welcher welches wenn wer werde werden wie wieder will wir wird wo woche wollen worden würde würden zu zum zur zwei zwischen
    """,
    """
    abfassen anrufen antwort antworte antworten artikel aufgabe bedeutet beispiel bereite berechne beschreibe brief briefe datei daten dauert
    details e-mail email ende entwirf erklär erkläre erklären erstelle erstellen erzähl erzähle fasse fass frage fragen funktioniert funktionieren
    geh gib hilf hilfe idee ideen info infos kunde kunden kurz kurze kurzen kurzer liste mach mache mail mails möglich nachricht nachrichten
    name namen neue neuen neuer nutzer nutzerin plane plan prüf prüfe punkte sag sage sätze satz sätzen schlag schreib schreibe schreiben seite
    seiten such suche tabelle tabellen tage text texte thema themen überprüfe übersetz übersetze unterschied vergleich vergleiche verstehen
    vorschlag vorschläge vorschlagen will worte wörter zeig zeige zeit zusammen zusammenfassung
    """,
    "e en er ern em es s n nen innen",
)

SPANISH: Final = _language(
    """
    a al algo alguien algún alguna algunas alguno algunos ahí ahora allí antes aquel aquella aquí así aun aún aunque ayer bien buen buena
    buenas bueno buenos cada casi como cómo con contra cosa cosas cual cuál cuáles cualquier cuando cuándo cuánta cuántas cuánto cuántos de
    debe deben del desde después día días dónde donde dos durante e él el ella ellas ellos en entre era eran eres es esa esas ese eso esos
    esta está están estar estas este esto estos estoy favor fue fueron gracias gran ha hace hacen hacer hacia han hasta hay hola hoy incluso
    jamás la las le les lo los luego mañana más me mejor menos mi mí mientras mis mismo misma muchas mucho muchos muy nada nadie ni ningún
    ninguna no noche nos nosotros nuestra nuestras nuestro nuestros nueva nuevo nunca o os otra otras otro otros para pero poco podemos podrías
    poder por porque primero pronto puede pueden puedes puedo pues que qué queremos quién quien quiere quieren quiero sabes se sea según ser
    será si sí siempre sin sobre sois solo sólo somos son soy su sus tal también tampoco tan tanto tarde tardes te tengo tenemos tiene tienen
    toda todas todavía todo todos tres tu tú tus u un una unas uno unos usted va vamos van vez voy y ya yo
    """,
    """
    ayuda ayúdame añade analiza archivo artículo breve busca calcula capital carta clientes cliente compara compras comprueba correo correos corta
    corto crea cuenta dame datos describe di diferencia dime diseña ejemplo ejemplos elabora encuentra envía escribe escribir escríbeme
    explica explicar explícame ficha frase frases función funciona funcionan genera guía haz hazme historia idea ideas información informe
    informes lista listas mensaje mensajes mejora muestra necesita necesito nombre organiza página páginas palabras párrafo pasos planifica
    plan pregunta prefiere prepara preparar propón pregunta pueda punto puntos recomienda redacta redactar respuesta resume resumen revisa sirve
    sugiere tabla tarea tema texto tiempo título traduce usa usar usuario usuaria vacía
    """,
    "s es a as o os e an en ar er ir ado ada ados adas",
)

FRENCH: Final = _language(
    """
    l d qu j n a à ai aller alors après as assez au aucun aucune aujourd'hui aussi autre autres aux avant avec avoir ayant beaucoup bien bon bonjour
    bonne bonsoir ça car ce ceci cela celle celles celui cent ces cet cette ceux chaque chez ci combien comme comment contre d'un d'une dans
    de déjà demain depuis des deux devant dire doit doivent donc dont du elle elles en encore enfin entre es est et étaient était être eu eux
    faire fait faut fois hier ici il ils j'ai je jour jours jusqu'à jusque l'on la là laquelle le lequel les leur leurs lieu lors lorsque lui ma
    mais mal me même mêmes merci mes mettre moi moins mon n'est ne ni non nos notre nôtre nous nouveau nouvelle on ont ou où oui par parce parfois
    pas passer pendant peu peut peux plus plusieurs plutôt pour pourquoi pourrais pourrait pouvez prochain prochaine puis qu'est qu'il qu'on
    quand quatre que quel quelle quelles quels quelque quelques qui quoi rien s'il sa sans se selon sera serait ses seul seulement si sien
    soit son sont sous souvent sur suis ta tant te tel telle tes toi ton toujours tous tout toute toutes très trois trop tu un une va vais
    vas vers veut veux voici voilà vont vos votre vôtre vous voudrais vraiment y
    """,
    """
    aide aide-moi ajoute analyse article calcule cherche client clients combien compare conseille corrige cours court courte crée décris
    différence document donne donne-moi donnée données élabore écris écrire écris-moi écrivez envoie exemple exemples explique explique-moi
    expliquer fais fichier fonctionne fonctionnent histoire idée idées information informations lettre lettres liste mail mails message messages
    montre mot mots nom page pages paragraphe phrase phrases plan point points préfère prépare préparer propose question questions raconte
    rapport recommande rédige rédiger réponds réponse résume résumé souhaite suggère sujet tableau tableaux temps texte textes titre traduis
    trouve utilise utilisateur utilisatrice vérifie
    """,
    "s e es er ez ent é ée és ées x",
    "l' d' qu'",
)

PORTUGUESE: Final = _language(
    """
    a à ao aos agora ainda algo alguém algum alguma algumas alguns ali amanhã ano antes ao apenas aquela aquele aqui as às assim até bem boa
    bom cada coisa com como contra da das de dele dela delas deles depois desde dessa desse desta deste dia dias disso do dois dos duas e é
    ela elas ele eles em entre então era essa essas esse esses esta está estão estar estas este estes estou eu fazer favor foi for foram há hoje
    isso isto já lá lhe lhes mais mas me mesma mesmo meu meus mim minha minhas muita muitas muito muitos na nada não nas nem nenhum nenhuma
    ninguém no nos nós nossa nossas nosso nossos nova novo num numa nunca o obrigada obrigado oi olá onde ontem os ou outra outras outro outros
    para pela pelas pelo pelos pode podem poder pois por porque posso pouco preciso precisa primeiro próximo próxima qual quais qualquer quando
    quanto quantos quantas que quem quer quero quê se seja sem sempre ser será seu seus si sim só sobre somos sou sua suas tal também tanto te
    tem têm temos tenho ter teu todo toda todas todos três tu tua tudo um uma umas uns vai vamos vão vez você vocês vou
    """,
    """
    adicione ajuda ajude analise arquivo artigo busca calcule carta cliente clientes compare conte corrija crie crescer dados dá dê descreva
    diferença diga elabore email e-mail encontre envie escreva escrever escreve exemplo explica explique fale faça faz frase frases funciona
    função gere gosta história ideia ideias informação informações liste lista mensagem mensagens melhore mostre nome página páginas palavras
    parágrafo passos planeje plano ponto pontos prefere prepare preparar pergunta procure proponha recomende redija relatório resposta resuma
    resumo revise sugira sugestão tabela tabelas tarefa tema tempo texto título traduza usa use usuário usuária verifique
    """,
    "s es a as o os e ao oes ão ões am em ar er ir",
)

ITALIAN: Final = _language(
    """
    l dell all nell a ad agli ai al alla alle allo allora altra altre altri altro anche ancora appena avere bene c'è che chi ci ciao ciò col come con contro
    cosa così cui da dagli dai dal dalla dalle dallo degli dei del dell della delle dello dentro di dopo dove due e è ed era erano essere fa
    fare fatto favore fino fra già giorno giorni gli grazie ha hai hanno ho i il in io l la là le lei li lo loro lui ma me meglio meno mi mia
    mie miei mio molta molte molti molto ne negli nei nel nella nelle nello nessun nessuna niente no noi non nostra nostre nostri nostro nulla o
    oggi ogni ora per perché però più poco poi possiamo posso prima può puoi qual quale quali qualche quando quanta quante quanti quanto quasi
    quella quelle quelli quello questa queste questi questo qui quindi sarà se sei senza si sì sia siamo siete sono sopra sotto sta stata stato
    stesso su sua sue sugli sui sul sulla suo suoi tanto te ti tra tre troppo tu tua tuo tutta tutte tutti tutto un un' una uno va vi voglio
    vorrei vostra vostro
    """,
    """
    aiutami aggiungi analizza articolo calcola cerca cliente clienti confronta consiglia crea correggi dammi dati descrivi differenza dimmi
    email elenca elenco esempio fai fammi file frase frasi funziona genera idea idee informazioni lettera lista mail messaggio messaggi mostra
    nome organizza pagina pagine paragrafo parole piano prepara preferisce proponi punti racconta rapporto relazione riassumi riassunto rispondi
    risposta rivedi scrivi scrivimi scrivere spiega spiegami storia suggerisci tabella tema tempo testo titolo traduci trova usa utente vuole
    """,
    "i e a o he hi are ere ire",
    "l' dell' all' un'",
)

DUTCH: Final = _language(
    """
    aan al alle alleen als altijd andere ben bij binnen dag dan dank dat de der deze die dit doen door dus een eens eerst elke en er even
    geen gaan gaat geeft geweest goed graag haar had heb hebben heeft heel hem hen het hier hij hoe hoeveel hun iets ik in is ja je jij jou
    jouw jullie kan keer komt kun kunnen kunt laat maar maken me meer meest met mij mijn minder moet moeten na naar nee niet niets nog nooit
    nu of om omdat ons onze ook op over pas per samen soms straks te tegen tijdens toch toen tot twee u uit uw van vanaf veel voor vraag waar
    waarom wanneer wat we weer wel welke werd wie wij wil willen word worden wordt zal ze zeer zelf zich zij zijn zo zoals zonder zou zullen
    """,
    """
    aantal antwoord beschrijf bestand bereken brief controleer e-mail geef gebruiker help idee ideeën klant klanten leg lijst mail maak
    naam ontwerp pagina plan punten samenvatting schrijf stel tabel tekst titel toon uit verbeter vergelijk vertaal verslag voorbeeld vragen
    woorden zin zinnen zoek
    """,
    "en s e n",
)

RUSSIAN: Final = _language(
    """
    а без более больше будет будем будут бы был была были было быть в вам вами вас ваш ваша ваше ваши весь во вот все всё всего всем всех вы
    где год да даже для день дня до добрый его ее её если есть еще ещё же за завтра здесь здравствуйте и из или им их к как какая какие
    какой какое какую ко когда конечно которая которые который кто ли либо лишь мало меня мне много могу могут можем может можете можно
    мой мои моя моего моей моём мы на над надо нам нами нас наш наша наше наши нашего нашей нашем не него нее нет неё ни нибудь них но
    ну нужен нужна нужно нужны о об обо один одна одно однако он она они оно от очень перед по под пожалуйста пока после потом потому
    почему при про просто раз с сам сама само самый свой своя свои себя сегодня сейчас сколько со спасибо так также такая такие такой там тебе
    тебя то тогда того тоже той только том тот три ты у уже хочу хотим чего чем через что чтобы чуть эта эти это этого этой этом этот эту я
    """,
    """
    введение вопрос вопросы вывод выводы выдели данные день дай дайте добавь задача идеи идея имя информация исправь клиент клиенту клиента клиентам
    коротко кратким краткий краткое напиши напишите написать найди назови объясни объясните опиши ответ отправь план письмо письма подготовь
    подготовьте подскажи подскажите покажи пользователь пользователя помоги помогите посчитай предложи предпочитает предпочитаю пример примеры
    приготовь придумай проверь просит работает рассказать расскажи расскажите рассчитай сделай сделать слова словами слов сообщение составь
    составьте список сравни сравните страница статья таблица таблицу текст тема тему файл фраза хочет
    """,
    "а я ы и у ю е о й ь ой ей ою ею ом ем ов ев ам ям ах ях ами ями ого его ому ему ый ий ая яя ое ее ые ие ую юю ых их ым им ыми ими",
)

ARABIC: Final = _language(
    """
    أ أحد أحتاج أريد أكثر ألا إلى أم أما أن أنا أنت أو أي أيضا أيضاً أين إذا إلا إن إنها إنه اليوم التي الذي الذين الى ان او اي ب بعد بعض
    بل بما بهذا بين بها به تحت تلك تم ثم جدا جداً حتى حول حيث خلال دون ذلك رجاء رجاءً سوف شكرا شكراً ضد عبر عدة على عليه عليها عن عند عندما
    غير فإن فقط في فيه فيها قبل قد كان كانت كذلك كل كم كما كيف لا لأن لدي لدينا لقد لك لكن لكي للغاية لم لماذا لمن لن له لها لهذا لو لي ليس
    ليست ما ماذا متى مثل مرحبا مرحباً مع معي من منذ منه منها من هذا هذه هل هم هنا هناك هو هي و واحد وقد وهو وهي ولا يا يتم يجب يكون يمكن
    يمكنك يوم
    """,
    """
    أجب أضف أعد أعدّ أعطني أكتب اشرح اقترح اكتب اكتبي بيانات تقرير جدول جملة جمل ترجم حضّر حلل رسالة رسائل الرسائل الرسالة ساعدني شرح صفحة عميل
    فكرة قائمة قارن قصيرة قصير كتابة لخص لخّص مثال مستخدم المستخدم معلومات ملخص ملف موضوع نص نصا وصف يريد يفضل يفضّل نهاية النهاية أطلب فيها
    """,
    "ات ة ه ها هم ين ون ان ية ي ا",
    "ال وال بال لل كال فال و ب ل",
    shortest_stem=3,
)

KOREAN: Final = _language(
    "그 그리고 그런데 나는 내 내가 너무 는 다 더 또 또는 매우 뭐 및 수 아니 안 어떤 어떻게 어디 언제 없이 왜 우리 이 이것 저 저는 제 제가 좀 줘 주세요 하고 해 해줘 것",
    "글 만들어 보내 사용자 사용자는 설명해 써 쓰기 알려 알려줘 요약해 원한다 작성해 정리해 짧은 추천해",
    "은 는 이 가 을 를 의 에 에서 에게 로 으로 와 과 도 만 까지 부터 처럼 하고 이나 이다 입니다 해 하고 한다",
    shortest_stem=2,
)

JAPANESE_FUNCTION_WORDS: Final = frozenset(
    """
    です ます ください てください ました ません という について ための ように ような から まで より など として による において される している
    したい して する した しない しよう してほしい ほしい いつ どこ どの どう なぜ どれ どんな だっけ ですか ますか でしたか いる ある ない ので けど けれど
    これ それ あれ この その あの ここ そこ まとめて もらえる もらえますか わかるように まず また そして さらに
    """.split(),
)
"""Runs of hiragana that say nothing."""

JAPANESE_VERBS: Final = frozenset(
    "教 書 作 使 取 決 言 見 出 行 来 思 知 聞 読 考 始 終 直 付 入 何 私 僕 今 前 後 中 上 下 字 人 方 返".split(),
)
"""Characters that, alone between kana, are a request's verb or say nothing."""

JAPANESE_PARTICLES: Final = ("", "は", "が", "を", "の", "に", "で", "も", "と")
"""What stands behind a katakana word in the same run of kana, which the server takes for one word."""

LATIN: Final = (GERMAN, SPANISH, FRENCH, PORTUGUESE, ITALIAN, DUTCH)
"""Those that a request's function words must tell apart."""
