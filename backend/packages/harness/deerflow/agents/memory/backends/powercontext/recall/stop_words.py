"""The words that ``query.py`` does not search for.

Too short a list costs a query its places, too long a one its hits.
"""

from __future__ import annotations

from typing import Final

FUNCTION_WORDS: Final = frozenset(
    """
    a about above across after afternoon afterwards again against ago ahead all almost along already also
    although always am among an and another any anybody anyone anything anyway anywhere april are around as ask
    asked at august away back be became because been before begin below beside best better between beyond big
    boss both bring but by came can cannot certain certainly clear clearly close colleague colleagues come
    complete could couldn't current currently day days december did didn't different do does doesn't doing don't
    done down dozen due during each eight either else end enough especially etc even evening ever every everybody
    everyone everything exactly fact far february feel feels few finally fine first five folks following for
    former found four friday from full fully further gave general get gets getting give given gives go goes going
    gone gonna good got great guys had half happen happened happens hard hardly has have haven't having he hello
    help helps her here hers herself hey hi him himself his hope hour hours how however huge hundred i i'd i'll
    i'm i've idea if important in indeed inside instead interesting into is isn't it it's item items its itself
    january july june just keep keeps kind know known large last lately later latter least left less let let's
    like likely little long longer look looked looking looks lot lots low made main mainly make makes making many
    march may maybe me mean means meanwhile mentioned might mine minute minutes moment monday month months more
    moreover morning most mostly much must my myself near nearly necessary need needed needs neither never
    nevertheless new next nice night nine no nobody none nor normal normally not note nothing november now
    nowhere obviously october of off often oh ok okay old on once one ones only onto open or ordinary other
    others otherwise our ours ourselves out outside over overall own part particular particularly parts past per
    perfect perhaps place please plus point possible possibly present pretty previous previously probably proper
    properly put quick quickly quite rather ready real really recent recently regarding regular related remaining
    right roughly same saturday say says second see seem seemed seems seen self september seven several shall she
    short should show shown shows simple simply since six small so some somebody someone something sometimes
    somewhat somewhere soon sorry special specific start started starts stay still stop such suddenly sunday
    super sure take taken takes tell ten than thank thanks that that's the their theirs them themselves then
    there there's therefore these they they're thing things think third this those though thought thousand three
    through throughout thursday thus tidy time times to today together told tomorrow tonight too top toward
    towards tried try trying tuesday turn twice two typical typically under understand unless until up upon us
    use used useful user uses using usual usually various very via want wanted wants was wasn't way ways we we'd
    we'll we're we've wednesday week weekend weeks well went were weren't what what's whatever when whenever
    where where's wherever whether which while who who's whole whom whose why will wish with within without won't
    wonder word words work worked working works would wouldn't year years yes yesterday yet you you'd you'll
    you're you've your yours yourself zero
    """.split(),
)
"""English words that say nothing of a subject."""

TASK_VERBS: Final = frozenset(
    """
    add adjust analyse analyze answer apply arrange assess build calculate change check choose clean collect
    combine compare compile complete compose compute configure consider convert copy correct count create debug
    define delete deliver deploy describe design determine develop discuss document draft draw edit ensure
    estimate evaluate examine explain export extend extract figure fill find finish fix follow format generate
    give handle help identify implement import improve include inspect install integrate introduce investigate
    list look make map measure merge migrate modify move name optimise optimize organise organize outline plan
    plot prepare process produce propose provide read rebuild recommend redesign redo reduce refactor remove
    rename reorganise reorganize repair rephrase replace report research resolve restructure review revise
    rewrite run save schedule search select send set setup share shorten show simplify sketch solve sort split
    start suggest summarise summarize support switch tell test tidy transform translate turn update upgrade use
    validate verify visualise visualize write
    """.split(),
)
"""English verbs that open a request. Elsewhere most of them are nouns, and then the subject: the draft, a test."""

CHINESE_CUTS: Final = tuple(
    """
    帮我 帮忙 请帮 请你 请问 麻烦 谢谢 感谢 我们 你们 他们 她们 您好 你好 大家 以及 或者 还是 为了 对于 关于 使用
    通过 按照 根据 遵循 针对 面向 一下 一个 一份 一条 一篇 一些 一套 一封 一种 一次 一段 一张 几个 几张 几种 几条
    这个 那个 这些 那些 这份 这边 那边 这里 那里 什么 怎么 怎样 如何 哪些 哪个 哪里 来着 并且 而且 但是 不过 因为
    所以 如果 然后 最后 首先 其次 之后 之前 以前 以后 现在 目前 最近 已经 可以 能够 需要 希望 想要 应该 应当 必须
    进行 完成 说明 分析 整理 准备 编写 制作 给出 提出 包括 内容 方面 时候 情况 部分 大概 左右 比较 非常 特别 所有
    每个 每次 多少 为什么 是什么 怎么办 两个 三个 四个 几位 没有 不要 不能 不会 就是 都是 也是 只是 其中 其他
    另外 同时 直接 一直 总是 有些 很多 好几 之类 等等 期间 相关 具体 主要 详细 简单 起来 出来 下来 上来 看到 看看
    觉得 知道 告诉 问题 事情 东西 原因 方案 帮助 今天 明天 昨天 上周 下周 本周 今年 明年 去年 上午 下午 晚上 半夜
    同事 同学 老板 领导 部门 小组 公司 我 你 您 他 她 它 的 了 着 吗 呢 吧 啊 呀 么 在 是 和 与 及 或 把 被 请 帮
    让 给 从 到 就 都 也 还 又 再 很 太 更 最 这 那 哪 写 做 看 说 想 个 份 条 篇 张 封 次 为 并 但 而 且 以 由
    于 之 其 该 此 有 跟 将 用
    """.split(),
)
"""Where one Chinese subject ends and the next begins. The server's own segmenter sees to the rest."""
