"""Steps, parts, owners, inboxes, citations and links of the id graph."""

import django.db.models.deletion
import django.utils.timezone
import memory.graph.models
import memory.ids
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('graph', '0002_isolation'),
        ('tenants', '0002_isolation'),
    ]

    operations = [
        migrations.CreateModel(
            name='Answer',
            fields=[
                ('id', models.UUIDField(default=memory.ids.new_key, editable=False, primary_key=True, serialize=False)),
                ('door', models.CharField(max_length=200)),
                ('key', models.CharField(max_length=300)),
                ('asked', models.BinaryField()),
                ('status', models.IntegerField()),
                ('body', models.TextField()),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='Citation',
            fields=[
                ('pk', models.CompositePrimaryKey('worker_id', 'cited', blank=True, editable=False, primary_key=True, serialize=False)),
                ('cited', models.CharField(max_length=100)),
                ('position', models.IntegerField()),
                ('origin', models.CharField(choices=[('given', 'given'), ('text', 'text')], max_length=5)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                ('worker', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='citations', to='graph.worker')),
            ],
        ),
        migrations.CreateModel(
            name='InboxEntry',
            fields=[
                ('pk', models.CompositePrimaryKey('worker_id', 'seq', blank=True, editable=False, primary_key=True, serialize=False)),
                ('seq', models.BigIntegerField()),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                ('trigger', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='graph.trigger')),
                ('worker', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='inbox', to='graph.worker')),
            ],
        ),
        migrations.CreateModel(
            name='Link',
            fields=[
                ('id', models.UUIDField(default=memory.ids.new_key, editable=False, primary_key=True, serialize=False)),
                ('to_key', models.CharField(blank=True, max_length=300)),
                ('kind', models.CharField(max_length=40)),
                ('made_by', models.CharField(max_length=100)),
                ('because_of', models.CharField(blank=True, max_length=100)),
                ('made_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('removed_at', models.DateTimeField(null=True)),
                ('from_thread', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='links', to='graph.thread')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                ('to_thread', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='linked_from', to='graph.thread')),
            ],
        ),
        migrations.CreateModel(
            name='Owner',
            fields=[
                ('pk', models.CompositePrimaryKey('thread_id', 'worker_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('pass_through', models.BooleanField(default=False)),
                ('since', models.DateTimeField(default=django.utils.timezone.now)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                ('thread', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='owners', to='graph.thread')),
                ('worker', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='owned', to='graph.worker')),
            ],
        ),
        migrations.CreateModel(
            name='Part',
            fields=[
                ('pk', models.CompositePrimaryKey('trigger_id', 'name', blank=True, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=40)),
                ('media_type', models.CharField(max_length=200)),
                ('size', models.BigIntegerField()),
                ('sha256', models.BinaryField()),
                ('redactions', models.IntegerField(default=0)),
                ('sanitized', models.IntegerField(default=0)),
                ('content', models.BinaryField(null=True)),
                ('stored_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                ('trigger', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='graph.trigger')),
            ],
        ),
        migrations.CreateModel(
            name='Step',
            fields=[
                ('pk', models.CompositePrimaryKey('thread_id', 'seq', blank=True, editable=False, primary_key=True, serialize=False)),
                ('seq', models.BigIntegerField()),
                ('public_id', models.CharField(default=memory.graph.models.step_id, max_length=100)),
                ('kind', models.CharField(max_length=20)),
                ('trigger_public_id', models.CharField(blank=True, max_length=100)),
                ('worker_public_id', models.CharField(blank=True, max_length=100)),
                ('other_public_id', models.CharField(blank=True, max_length=100)),
                ('summary', models.TextField(blank=True)),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='tenants.tenant')),
                ('thread', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='graph.thread')),
            ],
        ),
        migrations.RemoveConstraint(
            model_name='thread',
            name='one_thread_per_id',
        ),
        migrations.RemoveConstraint(
            model_name='thread',
            name='one_thread_per_key',
        ),
        migrations.RemoveConstraint(
            model_name='trigger',
            name='one_trigger_per_id',
        ),
        migrations.RemoveConstraint(
            model_name='trigger',
            name='one_trigger_per_external_id',
        ),
        migrations.RemoveConstraint(
            model_name='worker',
            name='one_worker_per_id',
        ),
        migrations.AddField(
            model_name='thread',
            name='active_at',
            field=models.DateTimeField(default=django.utils.timezone.now),
        ),
        migrations.AddField(
            model_name='thread',
            name='last_at',
            field=models.DateTimeField(default=django.utils.timezone.now),
        ),
        migrations.AddField(
            model_name='thread',
            name='trigger_count',
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='thread',
            name='worker_count',
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='trigger',
            name='by',
            field=models.CharField(blank=True, max_length=100),
        ),
        migrations.AddField(
            model_name='trigger',
            name='fingerprint',
            field=models.BinaryField(default=bytes),
        ),
        migrations.AddField(
            model_name='trigger',
            name='idempotency_key',
            field=models.CharField(max_length=300, null=True),
        ),
        migrations.AddField(
            model_name='worker',
            name='by',
            field=models.CharField(blank=True, max_length=100),
        ),
        migrations.AddField(
            model_name='worker',
            name='last_inbox_seq',
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='worker',
            name='report_head',
            field=models.TextField(blank=True),
        ),
        migrations.AddField(
            model_name='worker',
            name='report_redactions',
            field=models.IntegerField(default=0),
        ),
        migrations.AddField(
            model_name='worker',
            name='report_sha256',
            field=models.BinaryField(null=True),
        ),
        migrations.AddField(
            model_name='worker',
            name='report_size',
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='worker',
            name='report_tail',
            field=models.TextField(blank=True),
        ),
        migrations.AddField(
            model_name='worker',
            name='reported_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='worker',
            name='session_public_id',
            field=models.CharField(blank=True, max_length=100),
        ),
        migrations.AlterField(
            model_name='thread',
            name='created_at',
            field=models.DateTimeField(default=django.utils.timezone.now),
        ),
        migrations.AlterField(
            model_name='trigger',
            name='received_at',
            field=models.DateTimeField(default=django.utils.timezone.now),
        ),
        migrations.AlterField(
            model_name='trigger',
            name='thread',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='triggers', to='graph.thread'),
        ),
        migrations.AlterField(
            model_name='worker',
            name='created_at',
            field=models.DateTimeField(default=django.utils.timezone.now),
        ),
        migrations.AddIndex(
            model_name='thread',
            index=models.Index(fields=['tenant', 'created_at', 'id'], name='graph_thread_in_order'),
        ),
        migrations.AddIndex(
            model_name='thread',
            index=models.Index(condition=models.Q(('deleted_at__isnull', True), ('state', 'open')), fields=['tenant', '-active_at'], name='graph_thread_open_latest'),
        ),
        migrations.AddIndex(
            model_name='worker',
            index=models.Index(condition=models.Q(('session_public_id', ''), _negated=True), fields=['session_public_id', 'tenant'], name='graph_worker_session'),
        ),
        migrations.AddConstraint(
            model_name='thread',
            constraint=models.UniqueConstraint(fields=('public_id', 'tenant'), name='one_thread_per_id'),
        ),
        migrations.AddConstraint(
            model_name='thread',
            constraint=models.UniqueConstraint(fields=('key', 'tenant'), name='one_thread_per_key'),
        ),
        migrations.AddConstraint(
            model_name='trigger',
            constraint=models.UniqueConstraint(fields=('public_id', 'tenant'), name='one_trigger_per_id'),
        ),
        migrations.AddConstraint(
            model_name='trigger',
            constraint=models.UniqueConstraint(condition=models.Q(('external_id__isnull', False)), fields=('external_id', 'source', 'tenant'), name='one_trigger_per_external_id'),
        ),
        migrations.AddConstraint(
            model_name='trigger',
            constraint=models.UniqueConstraint(condition=models.Q(('idempotency_key__isnull', False)), fields=('idempotency_key', 'tenant'), name='one_trigger_per_idempotency_key'),
        ),
        migrations.AddConstraint(
            model_name='worker',
            constraint=models.UniqueConstraint(fields=('public_id', 'tenant'), name='one_worker_per_id'),
        ),
        migrations.AddIndex(
            model_name='answer',
            index=models.Index(fields=['at'], name='graph_answer_at'),
        ),
        migrations.AddConstraint(
            model_name='answer',
            constraint=models.UniqueConstraint(fields=('key', 'door', 'tenant'), name='one_answer_per_key'),
        ),
        migrations.AddIndex(
            model_name='citation',
            index=models.Index(fields=['cited', 'tenant'], name='graph_citation_of'),
        ),
        migrations.AddIndex(
            model_name='link',
            index=models.Index(condition=models.Q(('to_thread__isnull', True)), fields=['to_key', 'tenant'], name='graph_link_pending'),
        ),
        migrations.AddConstraint(
            model_name='link',
            constraint=models.UniqueConstraint(condition=models.Q(('to_thread__isnull', False)), fields=('from_thread', 'to_thread', 'kind'), name='one_link_of_a_kind'),
        ),
        migrations.AddConstraint(
            model_name='link',
            constraint=models.UniqueConstraint(condition=models.Q(('to_thread__isnull', True)), fields=('from_thread', 'to_key', 'kind'), name='one_pending_link_of_a_kind'),
        ),
        migrations.AddConstraint(
            model_name='step',
            constraint=models.UniqueConstraint(fields=('public_id', 'tenant'), name='one_step_per_id'),
        ),
    ]
