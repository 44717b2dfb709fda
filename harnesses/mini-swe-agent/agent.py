"""mini-swe-agent: it ends only when a command prints the word that submits. The task's tools are commands."""

from evalkit_harness import serve
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel

HOW = (
    "The task's tools are commands: evalkit-tool NAME JSON. When everything is done, run\n"
    "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
)


def run(job):
    told = "\n".join(f"{tool['name']} {tool['input_schema']}: {tool['description']}" for tool in job.tools)
    model = LitellmModel(
        model_name=f"anthropic/{job.model}",
        model_kwargs={"api_base": job.anthropic_url, "drop_params": True},
    )
    agent = DefaultAgent(
        model,
        LocalEnvironment(cwd=job.folder),
        system_template=HOW,
        instance_template="{{task}}",
    )
    return agent.run(f"{job.prompt}\n\n{told}")["exit_status"]


serve(run)
