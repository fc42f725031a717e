"""Asks a model behind an OpenAI-compatible server: `URL` says which, by default one on this machine."""

import os

import httpx2

URL = os.environ.get("URL", "http://127.0.0.1:8000/v1")
client = httpx2.AsyncClient(timeout=60)


async def answer(question):
    body = {"model": "any", "temperature": 0, "messages": [{"role": "user", "content": question}]}
    reply = await client.post(f"{URL}/chat/completions", json=body)
    reply.raise_for_status()
    return reply.json()["choices"][0]["message"]["content"]
