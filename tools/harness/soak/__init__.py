"""A tunnel under load for a long time, while agents and workers are killed: every byte is compared, nothing may leak.

`run` starts the server, processes of agents (`agents`), the endpoints (`endpoints`) and clients (`clients`), and kills
some of them; `findings` judges what was seen. The command is `benchmarks.tunnel.soak`, a short run of it is a test.
"""
