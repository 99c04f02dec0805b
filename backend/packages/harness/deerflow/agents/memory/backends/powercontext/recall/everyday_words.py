"""Words that name a form of work or a thing that every project has, and not a subject.

One of them shared says little, two say enough.

What belongs in here: words that many people's requests have, whatever they are about ("report", "server", "customer",
"schedule"). What does not: what only some requests are about ("refund", "vineyard", "Kafka"). English in any form, for
it is compared by stem; Chinese as two characters side by side. Other languages have theirs in ``languages.py``.
"""

from __future__ import annotations

from typing import Final

EVERYDAY_WORDS: Final = frozenset(
    """
    abstract argument article audience author bullet chapter character column comment conclusion content context
    definition description diagram document draft essay example explanation expression figure footnote format heading
    headline illustration image introduction keyword label language layout letter link list literature message note outline output
    overview page pages paper papers paragraph passage phrase photo picture placeholder post reader reference result
    review script section sentence slide source story structure style subject summary table template term text title tone topic
    translation version video word writing

    address approach area assistant attachment average aim amount basis board boss business
    call case category chance change chart choice colleague company comparison condition contact cost count customer
    date deadline decision department detail difference director effort email employee event evidence expert fee feature feedback field
    folder form frame group guide head history impact individual industry information input instruction interest issue
    item job key kind knowledge leader lesson level limit line log mail manager management market material meeting member memo method
    mistake money network number object office option order owner package partner people percent performance person
    place plan point policy position power practice price principle priority problem procedure process product professional
    program progress project property proposal public purpose quality quarter question range rate reason recommendation record reply
    report request requirement research resource response responsibility revenue risk role room rule section
    service session shop side sign site situation size skill solution speaker stage stakeholder standard state statement status step
    stock store strategy study suggestion support system target task team tip total track trend type unit user value
    view visit volume

    access account admin api app application array asset attribute backend bug build button class client
    cluster code command component config configuration connection console data database default
    deployment design developer device directory domain endpoint engine entity entry environment error exception failure
    file fix flow framework frontend function handler header host import index instance integration
    interface job layer library machine mobile mode model module name node
    package page parameter path phone pipeline platform plugin production
    query repo repository request row schema screen script section server setting setup
    software stack storage string syntax tag test thread ticket tool upload url user username variable warning
    web window workflow

    body book box building child city class country day
    door eat family food foot friend fun game hand house kid lady life
    man parent party people phone room
    walk woman world

    accept achieve act agree aim allow appear ask attach avoid become begin believe belong book break bring build buy care carry
    catch cause clean clear close collect come complete confirm contain continue control cost cover create cut deal decide decrease
    depend display drive drop end enjoy enter establish exist expect experience face fail fall feel fight fill focus forget gain grow
    guess handle happen hate hear hold identify increase intend involve join keep lead learn leave lend let lie like limit live lose love
    manage matter mean meet mention miss notice obtain occur offer open pass pay perform pick play point prefer present prevent push
    put raise reach realise receive recognise reduce refer reflect refuse regard relate remain remember repeat represent require rest
    ring rise roll save seek separate serve share show sit smile sound speak spend spread stand stick stop store
    struggle suffer supply suppose surprise survive talk taste teach tend thank think throw touch treat trust try
    understand visit wait walk warn wear win wish wonder work worry

    dollar euro cent half page side top bottom left right corner middle beginning end front back inside outside
    hour minute second month decade century night evening noon midnight
""".split(),
)

EVERYDAY_PAIRS: Final = frozenset(
    """
    内容 数据 报告 文档 文章 文件 表格 标题 格式 要求 结构 功能 系统 用户 产品 项目 团队 公司 客户 工作 会议 计划 目标 结果 信息 支持 控制
    习惯 管理 服务 市场 价格 建议 标准 流程 版本 测试 代码 接口 页面 图表 语言 风格 语气 字数 每周 每天 每月 工具 设计 开发 一致 统一 生成
    提供 处理 检查 修改 增加 添加 保存 显示 设置 输出 更新 创建 推荐 介绍 解释 描述 总结 分类 类型 名称 数量 不超 超过 至少 最多 不少 重要 基本
    使用 采用 编写 正式 规范 中文 英文 翻译 引言 摘要 论文 邮件 回复 通知 发送 订单 分钟 小时 自动 前端 后端 数据库 据库 环境 部署 上线 机器
    人员 部门 负责 安排 时间 日期 开始 结束 准备 方案 策略 分析 研究 资料 材料 说明 案例 步骤 操作 手册 清单 模板 样式 图片 视频 文字 字段
    用的 一个 每个 不同 主要 相关 情况 方式 方法 原因 问题 影响 作用 过程 效果 质量 效率 成本 预算 费用 金额 价值 收入 销售 营销 推广 活动 运营
    学习 学生 老师 课程 教学 培训 考试 孩子 家长 朋友 家人 生活 健康 运动 旅行 周末 早餐 午餐 晚餐 喜欢 希望 需要 必须 不要 不能 可以
    """.split(),
)
"""The same of Chinese."""
