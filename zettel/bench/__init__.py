"""Benchmarks of recall, speed and cost.

Data: ``locomo``, ``longmemeval``, ``multihop``, ``mixed`` (LoCoMo and 2Wiki), ``personamem``, ``memoryagentbench``,
``changes``; ``synthetic`` and ``zipf`` generate scopes of any size.
Recall: ``metrics``, ``evaluation``, ``comparison`` (with ``significance``), ``baselines``, ``evolve``, ``overlap`` (of
stores).
Speed: ``speed`` (a transcript), ``sizes`` (with ``flat_index``), ``imports``, ``http_server``, ``neo4j`` (with
``neo4j_writes`` and ``bare_cypher``); ``child_process`` and ``timing`` measure.
Language models: ``llm``, with ``replay`` behind ``completions``.
Scorers: ``fitting``, ``decoder_training``, ``ablation``, ``feedback``, ``labelled_questions``.
``results`` and ``plots`` write the results; ``run_all`` runs all benchmarks of the documentation.
"""
